package intent

import (
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// The owner of an intent is found in its first event, in any form, and in no other event.
func TestOwnerOf(t *testing.T) {
	codec := Codec()
	for name, client := range map[string]string{"named": "payroll", "without a key": "", "escaped": `<"é`} {
		request := whole()
		request.Client = client
		kind, data, err := codec.Encode(Requested{ID: request.ID(), Digest: request.Digest(), Request: request})
		if err != nil {
			t.Fatal(err)
		}
		first := eventlog.Recorded{Event: eventlog.Event{Name: kind, Data: data}}
		if got, err := OwnerOf(first, codec); err != nil || got != client {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if got, quick := scanOwner(first); quick != (name != "escaped") || quick && got != client {
			t.Errorf("%s: read quickly: %v, %q", name, quick, got)
		}
		first.Data = []byte(strings.Replace(string(data), "{", "{ ", 1))
		if got, err := OwnerOf(first, codec); err != nil || got != client {
			t.Errorf("%s, in another form: %q, %v", name, got, err)
		}
	}
	kind, data, err := codec.Encode(Assigned{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OwnerOf(eventlog.Recorded{Event: eventlog.Event{Name: kind, Data: data}}, codec); err == nil {
		t.Error("an event without an owner has one")
	}
}

// The names of notices are those of all events that are reported, and of no others.
func TestNoticeNames(t *testing.T) {
	public := eventlog.Filter{Names: NoticeNames()}
	for _, e := range samples() {
		name, _, err := Codec().Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, told := Tell(whole().ID(), e); told != public.Passes("", name) {
			t.Errorf("%s: reported %v, and among the names: %v", name, told, !told)
		}
	}
}
