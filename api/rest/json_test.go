package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// read reads a document with one number and one list of strings.
func read(data []byte) (n uint64, list []string, err error) {
	r := reader{data: data}
	err = r.readDocument(
		member{"n", func() (err error) { n, err = r.uint64(); return err }},
		member{"list", func() error {
			return r.list(func(int) error {
				s, err := r.string()
				list = append(list, string(s))
				return err
			})
		}},
	)
	return n, list, err
}

func TestReadDocument(t *testing.T) {
	for _, tt := range []struct {
		data string
		n    uint64
		list []string
	}{
		{`{"n":0,"list":[]}`, 0, nil},
		{"\t{ \"list\" : [ \"a\" ,\r\n\"\" ] , \"n\" : 18446744073709551615 } \n", 1<<64 - 1, []string{"a", ""}},
		{`{"n":7,"list":["\"\\\/\b\f\n\r\t","\u0041\u00e9\u20ac","\ud83d\ude00","é€😀","a\u0062c"]}`, 7,
			[]string{"\"\\/\b\f\n\r\t", "Aé€", "😀", "é€😀", "abc"}},
	} {
		n, list, err := read([]byte(tt.data))
		if err != nil || n != tt.n || !slices.Equal(list, tt.list) {
			t.Errorf("%s: read %d %q, %v", tt.data, n, list, err)
		}
	}
}

func TestReadDocumentRefuses(t *testing.T) {
	const malformed, wrong = ErrMalformedJSON, ErrInvalidRequest
	for _, tt := range []struct {
		data string
		as   eventlog.Refusal
		says string
	}{
		{"", malformed, "empty"},
		{" \n", malformed, "empty"},
		{"\xef\xbb\xbf{}", malformed, "byte order mark"},
		{"\xfe\xff\x00{\x00}", malformed, "UTF-8"},
		{`null`, wrong, "the document must be an object, not null"},
		{`[]`, wrong, "the document must be an object, not an array"},
		{`"x"`, wrong, "not a string"},
		{`7`, wrong, "not a number"},
		{`true`, wrong, "not a boolean"},
		{`nil`, malformed, "misspelt"},
		{strings.Repeat("[", 20_000), wrong, "not an array"},
		{strings.Repeat(`{"n":`, 20_000), wrong, "/n must be a number, not an object"},
		{`{"n":1,"list":` + strings.Repeat("[", 9_999), wrong, "/list/0 must be a string, not an array"},
		{`{}`, wrong, `the document lacks the member "n"`},
		{`{"n":1}`, wrong, `lacks the member "list"`},
		{`{"n":1,"list":[],"n":1}`, wrong, `the member "n" twice`},
		{`{"n":1,"list":[],"\u006e":1}`, wrong, `the member "n" twice`},
		{`{"N":1,"list":[]}`, wrong, `unknown member "N"`},
		{`{"ſ":1}`, wrong, `unknown member "ſ"`},
		{`{"more":1}`, wrong, `unknown member "more"`},
		{`{"` + strings.Repeat("x", 100) + `":1}`, wrong, `unknown member "` + strings.Repeat("x", 64) + `"…`},
		{`{"n":null,"list":[]}`, wrong, "/n must be a number, not null"},
		{`{"n":"1","list":[]}`, wrong, "/n must be a number, not a string"},
		{`{"n":1,"list":null}`, wrong, "/list must be an array, not null"},
		{`{"n":1,"list":["a",null]}`, wrong, "/list/1 must be a string, not null"},
		{`{"n":1,"list":["a",1]}`, wrong, "/list/1 must be a string, not a number"},
		{`{"n":1,"list":"a"}`, wrong, "/list must be an array, not a string"},
		{`{"n":-1,"list":[]}`, wrong, "whole number"},
		{`{"n":-0,"list":[]}`, wrong, "whole number"},
		{`{"n":1.0,"list":[]}`, wrong, "whole number"},
		{`{"n":1e2,"list":[]}`, wrong, "whole number"},
		{`{"n":1e999,"list":[]}`, wrong, "whole number"},
		{`{"n":01,"list":[]}`, wrong, "whole number"},
		{`{"n":18446744073709551616,"list":[]}`, wrong, "whole number"},
		{`{"n":0x1,"list":[]}`, malformed, "comma"},
		{`{"n":1_0,"list":[]}`, malformed, "comma"},
		{`{"n":+1,"list":[]}`, malformed, "misspelt"},
		{`{"n":1,"list":[],}`, malformed, "name must be a string"},
		{`{,"n":1,"list":[]}`, malformed, "name must be a string"},
		{`{n:1,"list":[]}`, malformed, "name must be a string"},
		{`{"n" 1,"list":[]}`, malformed, "colon"},
		{`{"n":1 "list":[]}`, malformed, "comma"},
		{`{"n":1,"list":["a",]}`, malformed, "misspelt"},
		{`{"n":1,"list":["a" "b"]}`, malformed, "comma"},
		{`{"n":1,"list":["a"`, malformed, `"]" is missing`},
		{`{"n":1,"list":[]`, malformed, `"}" is missing`},
		{`{"n":1,"list":[]}}`, malformed, "after the end"},
		{`{"n":1,"list":[]}{"n":1,"list":[]}`, malformed, "after the end"},
		{`{"n":1,"list":[]} x`, malformed, "after the end"},
		{"{\"n\":1,\"list\":[]}\x00", malformed, "after the end"},
		{"{\"n\":1,\v\"list\":[]}", malformed, "name must be a string"},
		{`{"n":1,"list":['a']}`, malformed, "misspelt"},
		{"{\"n\":1,\"list\":[\"\xff\"]}", malformed, "UTF-8"},
		{"{\"n\":1,\"list\":[\"\xed\xa0\x80\"]}", malformed, "UTF-8"},
		{"{\"n\":1,\"list\":[\"a\nb\"]}", malformed, "control character"},
		{"{\"n\":1,\"list\":[\"a\\n\x01\"]}", malformed, "control character"},
		{`{"n":1,"list":["a\u0000"]}`, malformed, "NUL"},
		{`{"n":1,"list":["\ud800"]}`, malformed, "surrogate"},
		{`{"n":1,"list":["\udc00\ud800"]}`, malformed, "surrogate"},
		{`{"n":1,"list":["\ud800\u0041"]}`, malformed, "surrogate"},
		{`{"n":1,"list":["\ud800x"]}`, malformed, "surrogate"},
		{`{"n":1,"list":["\ud83d\ude0`, malformed, "surrogate"},
		{`{"n":1,"list":["\x41"]}`, malformed, "escape"},
		{`{"n":1,"list":["\u00g0"]}`, malformed, "escape"},
		{`{"n":1,"list":["\u+041"]}`, malformed, "escape"},
		{`{"n":1,"list":["\U0041"]}`, malformed, "escape"},
		{`{"n":1,"list":["\`, malformed, "escape"},
		{`{"n":1,"list":["a`, malformed, "does not end"},
		{`{"n":1,"list":["a\n`, malformed, "does not end"},
	} {
		_, _, err := read([]byte(tt.data))
		if !errors.Is(err, tt.as) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.60q: answered %v, want %s: …%s…", tt.data, err, tt.as, tt.says)
		}
	}
}

// Accepted text must mean the same to every other JSON parser.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		`{"n":1,"list":["a","\u0041\ud83d\ude00"]}`, `{"n":1,"list":[],"n":1}`, `{"N":1,"list":[]}`, `{"n":1.0,"list":[null]}`,
		"\xef\xbb\xbf{}", `{"n":1,"list":[]} {}`, `{"n":18446744073709551616,"list":["\ud800"]}`, strings.Repeat("[", 50),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, list, err := read(data)
		if err != nil {
			if !errors.Is(err, ErrMalformedJSON) && !errors.Is(err, ErrInvalidRequest) {
				t.Fatalf("%q: an error of another kind: %v", data, err)
			}
			// A refusal is wrong if a careful writer would write these very bytes for their
			// meaning.
			if n, list, ok := careful(data); ok {
				t.Fatalf("%q means %d %q and was refused: %v", data, n, list, err)
			}
			return
		}
		var want struct {
			N    *uint64   `json:"n"`
			List *[]string `json:"list"`
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil || want.N == nil || want.List == nil || d.More() {
			t.Fatalf("%q was taken, encoding/json says %v", data, err)
		}
		if n != *want.N || !slices.Equal(list, *want.List) {
			t.Fatalf("%q was read as %d %q, encoding/json reads %d %q", data, n, list, *want.N, *want.List)
		}
	})
}

// careful reports whether encoding/json would write exactly data for its meaning.
func careful(data []byte) (n uint64, list []string, ok bool) {
	var doc struct {
		N    uint64   `json:"n"`
		List []string `json:"list"`
	}
	if json.Unmarshal(data, &doc) != nil || doc.List == nil {
		return 0, nil, false
	}
	again, err := json.Marshal(doc)
	return doc.N, doc.List, err == nil && bytes.Equal(again, data) && !bytes.Contains(data, []byte(`\u0000`))
}
