package promises

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Canaries checks P28: planted secrets must not appear in the service's output, as raw bytes, hex
// or base64.
type Canaries struct {
	needles []needle
	longest int
}

type needle struct {
	name string
	text []byte
}

// canaryMin is the least length of a secret: a shorter one could be found by chance.
const canaryMin = 8

// NewCanaries returns canaries of secrets by name. It panics on a secret shorter than 8 bytes.
func NewCanaries(secrets map[string][]byte) *Canaries {
	c := &Canaries{}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		secret := secrets[name]
		if len(secret) < canaryMin {
			panic(fmt.Sprintf("promise: the canary %q has %d bytes; it would be found by chance", name, len(secret)))
		}
		digits := hex.EncodeToString(secret)
		forms := [][]byte{secret, []byte(digits), bytes.ToUpper([]byte(digits))}
		for shift := range 3 { // base64 depends on the bytes before
			forms = append(forms, middle(secret[shift:]))
		}
		for _, form := range forms {
			if len(form) >= canaryMin {
				c.needles = append(c.needles, needle{name, form})
				c.longest = max(c.longest, len(form))
			}
		}
	}
	return c
}

// middle returns the part of a secret's base64 that does not depend on the bytes after it.
func middle(secret []byte) []byte {
	whole := secret[:len(secret)/3*3]
	return []byte(base64.StdEncoding.EncodeToString(whole))
}

// Watch returns a writer that searches its input for the canaries. where names the output: a log,
// an answer, a table.
func (c *Canaries) Watch(where string) *Watched { return &Watched{canaries: c, where: where} }

// Watched searches a stream of bytes for canaries.
type Watched struct {
	canaries *Canaries
	where    string
	tail     []byte // possible beginning of a canary
	seen     int64
	found    []Violation
	told     map[string]bool
}

// Write never fails.
func (w *Watched) Write(p []byte) (int, error) {
	data := append(w.tail, p...)
	start := w.seen - int64(len(w.tail))
	for _, n := range w.canaries.needles {
		if at := bytes.Index(data, n.text); at >= 0 && !w.told[n.name] {
			if w.told == nil {
				w.told = map[string]bool{}
			}
			w.told[n.name] = true
			w.found = append(w.found, Violation{P28, "", 0, fmt.Sprintf("%s holds %s at byte %d", w.where, n.name, start+int64(at))})
		}
	}
	w.seen += int64(len(p))
	w.tail = bytes.Clone(data[max(0, len(data)-w.canaries.longest+1):])
	return len(p), nil
}

// Found returns the secrets found so far, each once.
func (w *Watched) Found() []Violation { return w.found }
