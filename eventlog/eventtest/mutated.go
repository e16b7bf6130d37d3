package eventtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Mutated fuzzes a codec from its frozen samples. Any data under any name decodes to a fact or an
// error. A decoded fact encodes and decodes to itself, so that every accepted fact can be stored.
func Mutated[E any](f *testing.F, codec eventlog.Codec[E]) {
	files, err := filepath.Glob(path("*"))
	if err != nil || len(files) == 0 {
		f.Fatal("there are no samples", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "+")
		f.Add(name, data)
		f.Add(name, bytes.ReplaceAll(data, []byte(`"`), nil))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		fact, err := codec.Decode(name, data)
		if err != nil {
			return
		}
		written, encoded, err := codec.Encode(fact)
		if err != nil {
			t.Fatalf("%s %s is read as %+v, which cannot be written: %v", name, data, fact, err)
		}
		again, err := codec.Decode(written, encoded)
		if err != nil {
			t.Fatalf("%s is written as %s %s, which cannot be read: %v", data, written, encoded, err)
		}
		if _, twice, err := codec.Encode(again); err != nil || !bytes.Equal(encoded, twice) {
			t.Fatalf("%s changes with each writing:\n%s", data, cmp.Diff(string(encoded), string(twice)))
		}
	})
}
