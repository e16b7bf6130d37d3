package eventlog_test

import (
	"errors"
	"io"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

type fact interface{ isFact() }

type named struct{ Name string }

func (named) isFact() {}

// Unreadable data gives an error of its own, not an error that a broken connection gives too:
// such an error would be retried for ever.
func TestUnreadable(t *testing.T) {
	codec := eventlog.NewCodec(eventlog.As[fact, named]("named.v1"))
	for name, data := range map[string]string{
		"named.v2": `{}`, "named.v1": `{"Name":`, "": ``,
	} {
		if _, err := codec.Decode(name, []byte(data)); err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			t.Errorf("%s %s: %v", name, data, err)
		}
	}
	if e, err := codec.Decode("named.v1", []byte(`{"Name":"x"}`)); err != nil || e != (named{"x"}) {
		t.Errorf("%v, %v", e, err)
	}
}
