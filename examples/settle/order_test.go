package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	wanted = `{"o-1": {"chainId": 1, "calls": [{"to": "0xAA", "value": "5", "data": "0xCAFE"}]}}`
	paid   = `{"type":"TxConfirmed","request":{"key":"o-1","chainId":1,"calls":[{"to":"0xaa","value":"5","data":"0xcafe","dataBytes":2}]},` +
		`"state":{"status":"completed","hash":"0x11","kind":"first","receipt":{"status":1,"gasUsed":9,"effectiveGasPrice":"7","block":{"number":3}}}}`
)

func settle(t *testing.T, messages ...string) (lines []string, open int) {
	t.Helper()
	var out bytes.Buffer
	b, err := newBook([]byte(wanted), &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if err := b.read([]byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Fields(strings.TrimSpace(out.String())), b.open()
}

// An order is settled once, by the message that ends it, and only by the calls that it asked for.
func TestJudge(t *testing.T) {
	change := func(from, to string) string {
		if !strings.Contains(paid, from) {
			t.Fatalf("%s is not in the message", from)
		}
		return strings.Replace(paid, from, to, 1)
	}
	for name, c := range map[string]struct {
		messages []string
		want     []string
	}{
		"paid":              {[]string{paid, paid}, []string{`{"order":"o-1","paid":true,"hash":"0x11","block":3,"gasUsed":9,"effectiveGasPrice":"7"}`}},
		"not final":         {[]string{change("completed", "mined")}, nil},
		"another's":         {[]string{change("o-1", "o-2")}, nil},
		"a no-op":           {[]string{change("first", "no-op")}, []string{`{"order":"o-1","paid":false,"hash":"0x11","block":3,"gasUsed":9,"effectiveGasPrice":"7"}`}},
		"reverted":          {[]string{change(`"status":1`, `"status":0`)}, []string{`{"order":"o-1","paid":false,"hash":"0x11","block":3,"gasUsed":9,"effectiveGasPrice":"7"}`}},
		"another chain's":   {[]string{change(`"chainId":1`, `"chainId":2`)}, nil},
		"canceled, then it": {[]string{`{"request":{"key":"o-1"},"state":{"status":"canceled","reason":"canceled"}}`, paid}, []string{`{"order":"o-1","paid":false,"reason":"canceled"}`}},
	} {
		got, open := settle(t, c.messages...)
		if name == "another chain's" {
			if len(got) == 0 || !strings.Contains(strings.Join(got, " "), `"paid":false`) {
				t.Errorf("%s: %v", name, got)
			}
			continue
		}
		if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if (open == 0) != (len(c.want) > 0) {
			t.Errorf("%s: %d orders are open", name, open)
		}
	}
	if b, err := newBook([]byte(wanted), nil); err != nil || b.read([]byte("{")) == nil {
		t.Errorf("half a message is read: %v", err)
	}
}

// The example reads the messages that the relay's own tests have frozen.
func TestFrozenMessages(t *testing.T) {
	files, err := filepath.Glob("../../domain/relay/intent/testdata/messages/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		s, ended := judge(m, order{ChainID: 42431, Calls: []call{
			{"0x0200000000000000000000000000000000000000", "115792089237316195423570985008687907853269984665640564039457584007913129639935", "0xcafe"},
			{"0x0200000000000000000000000000000000000000", "", "0x01"},
		}})
		if last := strings.HasSuffix(path, "-6.json"); ended != last || s.Paid != last || s.Order != "salary-2026-11" {
			t.Errorf("%s: %+v, %t", path, s, ended)
		}
	}
}
