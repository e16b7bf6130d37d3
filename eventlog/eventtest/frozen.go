// Package eventtest checks a codec's promise for stored events: a name once written stays
// readable, and its shape never changes.
package eventtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// folder holds a JSON file for each name ever written. A shape may gain optional members: the
// longer shape is then frozen as name+1.json, name+2.json and so on. A fact without the new
// members still encodes to name.json.
var folder = filepath.Join("testdata", "events")

// Frozen checks a codec against its frozen samples. written has one fact of every current shape,
// with every field set. With update, names without a sample get one; an existing sample never
// changes.
func Frozen[E any](t *testing.T, codec eventlog.Codec[E], written []E, update bool) {
	t.Run("written as frozen", func(t *testing.T) {
		for _, e := range written {
			asFrozen(t, codec, e, update)
		}
	})
	t.Run("read for ever", func(t *testing.T) { readable(t, codec) })
}

// readable checks that every name has a sample, and that every sample decodes.
func readable[E any](t *testing.T, codec eventlog.Codec[E]) {
	for _, name := range codec.Names() {
		if _, err := os.Stat(path(name)); err != nil {
			t.Errorf("%s has no frozen sample: %v", name, err)
		}
	}
	files, err := filepath.Glob(path("*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, _, grown := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "+")
		if data, err := os.ReadFile(file); err != nil {
			t.Error(err)
		} else if e, err := codec.Decode(name, data); err != nil {
			t.Errorf("a name once written must be read for ever: %v", err)
		} else if _, err := os.Stat(path(name + "+1")); err == nil && !grown {
			writtenAs(t, codec, e, name, data)
		}
	}
}

// writtenAs checks that a fact without the members added since still encodes as before.
func writtenAs[E any](t *testing.T, codec eventlog.Codec[E], e E, name string, frozen []byte) {
	var pretty bytes.Buffer
	_, data, err := codec.Encode(e)
	if err == nil {
		err = json.Indent(&pretty, data, "", "  ")
	}
	if d := cmp.Diff(strings.TrimSpace(string(frozen)), pretty.String()); err != nil || d != "" {
		t.Errorf("%s without its new members is written in another shape (-frozen +written): %v\n%s", name, err, d)
	}
}

// newest returns the name of the longest frozen shape of a name.
func newest(name string) string {
	shape := name
	for n := 1; ; n++ {
		grown := fmt.Sprintf("%s+%d", name, n)
		if _, err := os.Stat(path(grown)); err != nil {
			return shape
		}
		shape = grown
	}
}

// asFrozen checks that a fact encodes byte for byte to its sample, decodes to the same fact, and
// that the sample has no zero field.
func asFrozen[E any](t *testing.T, codec eventlog.Codec[E], e E, update bool) {
	name, data, err := codec.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	value := reflect.ValueOf(e)
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Errorf("sample %s leaves %s unset", name, value.Type().Field(i).Name)
		}
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	frozen, err := os.ReadFile(path(newest(name)))
	if os.IsNotExist(err) && update {
		frozen, err = pretty.Bytes(), os.WriteFile(path(name), pretty.Bytes(), 0o644) //nolint:gosec // a sample is for everybody
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(frozen), pretty.String()); d != "" {
		t.Errorf("%s is written in another shape than the frozen one (-frozen +written); give the new shape a new name:\n%s", name, d)
	}
	back, err := codec.Decode(name, data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(e, back); d != "" {
		t.Errorf("%s does not survive being written and read (-before +after):\n%s", name, d)
	}
}

func path(name string) string { return filepath.Join(folder, name+".json") }
