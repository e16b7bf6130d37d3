package eventlog

import (
	"encoding/json"
	"errors"
	"testing"
)

type fact interface{ fact() }
type created struct{ Name string }
type renamed struct{ To string }

func (created) fact() {}
func (renamed) fact() {}

func codec() Codec[fact] {
	return NewCodec(
		As[fact, created]("created.v2"),
		From("created.v1", func(old struct{ First, Last string }) fact { return created{old.First + " " + old.Last} }),
		As[fact, renamed]("renamed.v1"),
	)
}

func TestCodec(t *testing.T) {
	c := codec()
	name, data, err := c.Encode(created{"Ada"})
	if err != nil || name != "created.v2" {
		t.Fatalf("%s, %v", name, err)
	}
	if e, err := c.Decode(name, data); err != nil || e != (created{"Ada"}) {
		t.Errorf("%v, %v", e, err)
	}
	if e, err := c.Decode("created.v1", []byte(`{"First":"Ada","Last":"L"}`)); err != nil || e != (created{"Ada L"}) {
		t.Errorf("a retired shape: %v, %v", e, err)
	}
	for name, data := range map[string]string{
		"unheard.v1": `{}`, "created.v2": `{"Name":"Ada","More":1}`, "renamed.v1": `{"To":7}`,
	} {
		if e, err := c.Decode(name, []byte(data)); err == nil {
			t.Errorf("%s %s decoded to %v", name, data, e)
		}
	}
}

func TestCodecRefusesMistakes(t *testing.T) {
	for name, make := range map[string]func(){
		"name twice":   func() { NewCodec(As[fact, created]("a"), As[fact, renamed]("a")) },
		"type twice":   func() { NewCodec(As[fact, created]("a"), As[fact, created]("b")) },
		"no fact":      func() { As[fact, string]("a") },
		"unregistered": func() { _, _, _ = NewCodec(As[fact, created]("a")).Encode(renamed{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			make()
		}()
	}
}

func TestDeriveID(t *testing.T) {
	a := DeriveID("s", ID{1}, 0)
	if a != DeriveID("s", ID{1}, 0) {
		t.Error("the same command derives another id")
	}
	for _, b := range []ID{DeriveID("s", ID{1}, 1), DeriveID("s", ID{2}, 0), DeriveID("t", ID{1}, 0)} {
		if a == b {
			t.Error("two events share an id")
		}
	}
	if v := a[6] >> 4; v != 5 {
		t.Errorf("UUID version %d, want 5", v)
	}
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var back ID
	if err := json.Unmarshal(data, &back); err != nil || back != a {
		t.Errorf("%s: %v", data, err)
	}
	for _, bad := range []string{"no", "", a.String() + "00", "x" + a.String()[1:]} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was taken for a UUID", bad)
		}
	}
}

func TestRefusal(t *testing.T) {
	const no = Refusal("no-thanks")
	err := no.Because("%d is enough", 3)
	if !errors.Is(err, no) || err.Error() != "no-thanks: 3 is enough" {
		t.Error(err)
	}
}

func TestFilter(t *testing.T) {
	for _, c := range []struct {
		f    Filter
		want bool
	}{
		{Filter{}, true},
		{Filter{Streams: []string{"tx-1-"}}, true},
		{Filter{Streams: []string{"tx-2-", "group-"}}, false},
		{Filter{Names: []string{"tx.mined."}}, true},
		{Filter{Names: []string{"tx.accepted."}}, false},
	} {
		if c.f.Passes("tx-1-0xab", "tx.mined.v1") != c.want {
			t.Errorf("%v: want %v", c.f, c.want)
		}
	}
}
