package rpc

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
)

// messages holds the nodes' error texts for a broadcast, one file per kind of node, one line
// per text:
//
//	code or * <tab> exact|glob|prefix|contains|any <tab> text <tab> class <tab> cause or -
//
// Case does not matter. In a glob, * matches any run of characters. any matches every text with
// that code. Among matching lines, exact wins over glob over prefix over contains over any,
// then a line with a code over a line without, then the longer text. Lines that begin with #
// are remarks.
//
//go:embed messages/*.tsv
var messages embed.FS

// rule is one line of messages.
type rule struct {
	file  string
	code  *int // nil: any
	kind  kind
	text  string // in lower case
	class tx.Class
	cause tx.Cause
}

// kind is how a rule's text is compared, most specific first.
type kind int

const (
	exact kind = iota
	glob
	prefix
	contains
	anything
)

var kinds = []string{"exact", "glob", "prefix", "contains", "any"}

// rules are the embedded lines in order of precedence. They are read once. A malformed line is
// a defect of the build.
var rules = sync.OnceValue(func() []rule {
	loaded, err := load(messages)
	if err != nil {
		panic(err)
	}
	return loaded
})

// Classify maps a node's JSON-RPC error to a broadcast to a class and a cause. An unlisted
// error may succeed later: tx.Retry.
func Classify(code int, message string) (tx.Class, tx.Cause) {
	message = strings.ToLower(strings.TrimSpace(message))
	for _, r := range rules() {
		if (r.code == nil || *r.code == code) && r.matches(message) {
			return r.class, r.cause
		}
	}
	return tx.Retry, ""
}

func (r rule) matches(message string) bool {
	switch r.kind {
	case exact:
		return message == r.text
	case prefix:
		return strings.HasPrefix(message, r.text)
	case contains:
		return strings.Contains(message, r.text)
	case glob:
		return globs(r.text, message)
	case anything:
		return true
	}
	panic(fmt.Sprintf("rule of kind %d", r.kind))
}

// globs matches a pattern in which * matches any run of characters.
func globs(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	head, tail := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	if len(parts) == 1 {
		return s == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(s, part)
		if !found {
			return false
		}
		s = rest
	}
	return strings.HasSuffix(s, tail)
}

func load(files fs.FS) (loaded []rule, err error) {
	names, err := fs.Glob(files, "messages/*.tsv")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		for n, line := range strings.Split(string(text), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			r, err := parseRule(line)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
			}
			r.file = name
			loaded = append(loaded, r)
		}
	}
	slices.SortStableFunc(loaded, func(a, b rule) int {
		switch {
		case a.kind != b.kind:
			return int(a.kind - b.kind)
		case a.code != nil && b.code == nil:
			return -1
		case a.code == nil && b.code != nil:
			return 1
		}
		return len(b.text) - len(a.text)
	})
	return loaded, contradictions(loaded)
}

// contradictions finds two lines that give different results for the same text.
func contradictions(loaded []rule) error {
	type question struct {
		code int
		kind kind
		text string
	}
	said := map[question]rule{}
	for _, r := range loaded {
		q := question{kind: r.kind, text: r.text}
		if r.code != nil {
			q.code = *r.code
		}
		if other, ok := said[q]; ok && (other.class != r.class || other.cause != r.cause) {
			return fmt.Errorf("%s and %s contradict each other about %q", other.file, r.file, r.text)
		}
		said[q] = r
	}
	return nil
}

func parseRule(line string) (r rule, err error) {
	columns := strings.Split(line, "\t")
	if len(columns) != 5 {
		return r, fmt.Errorf("%d columns, not 5", len(columns))
	}
	if columns[0] != "*" {
		code, err := strconv.Atoi(columns[0])
		if err != nil {
			return r, fmt.Errorf("code %q", columns[0])
		}
		r.code = &code
	}
	r.kind = kind(slices.Index(kinds, columns[1]))
	if r.kind < 0 {
		return r, fmt.Errorf("kind %q", columns[1])
	}
	r.text = strings.ToLower(columns[2])
	if r.kind == anything && r.code == nil {
		return r, fmt.Errorf("any text with any code")
	}
	if r.kind != anything && len(r.text) < 5 {
		return r, fmt.Errorf("text %q is too short to classify an error", r.text)
	}
	r.class = tx.Class(columns[3])
	if !slices.Contains([]tx.Class{tx.Known, tx.Retry, tx.Permanent, tx.Unknown}, r.class) {
		return r, fmt.Errorf("class %q", r.class)
	}
	if columns[4] != "-" {
		r.cause = tx.Cause(columns[4])
		if !slices.Contains(causes, r.cause) {
			return r, fmt.Errorf("cause %q", r.cause)
		}
	}
	return r, nil
}

var causes = []tx.Cause{
	tx.NonceTooLow, tx.NonceTooHigh, tx.TooEarly, tx.TooLate, tx.Funds, tx.Fee, tx.FeeCap, tx.Underpriced,
	tx.PoolFull, tx.KeyMissing, tx.Replayed, tx.RateLimited, tx.Unreachable,
}
