package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// setting is one row of the table: the name of a setting, its valid values, and how they are
// read and shown.
type setting struct {
	path     string // in the file: section.name
	kind     kind
	standard string   // the default as text; empty when there is none
	absent   string   // in words, the behaviour without a default
	allowed  string   // in words, the valid values
	words    []string // the valid values, if they are a few words
	doc      string   // sentences; backquotes mark code

	read func(text string) error // its errors describe the problem and contain no secret
	list func(f *file, n ast.Node)
	show func() string
	// own checks a chain entry's own value of the setting; nil for a setting that is the same
	// for every chain.
	own func(text string) error

	origin string // source of the value in force
	bad    bool   // a value was refused: further checks would only add noise
}

// kind is the sort of scalar that the file must contain.
type kind string

const (
	text     kind = "text"
	number   kind = "number"
	duration kind = "duration"
	toggle   kind = "true or false"
)

const envPrefix = "WATCHTOWER_"

// env is the setting's environment variable.
func (s *setting) env() string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.path))
}

// flag is the setting's flag, without the hyphens before it.
func (s *setting) flag() string { return strings.ReplaceAll(s.path, ".", "-") }

func durations(path string, value *time.Duration, standard, low, high time.Duration, doc string) *setting {
	return &setting{
		path: path, kind: duration, standard: showDuration(standard), doc: doc,
		allowed: showDuration(low) + " to " + showDuration(high),
		show:    func() string { return showDuration(*value) },
		read: func(text string) error {
			d, err := time.ParseDuration(text)
			switch {
			case err != nil:
				return fmt.Errorf("%s is not a duration such as 250ms, 3s or 24h", quote(text))
			case d < low || d > high:
				return fmt.Errorf("%s is not within %s to %s", showDuration(d), showDuration(low), showDuration(high))
			}
			*value = d
			return nil
		},
	}
}

func numbers[N int | int64](path string, value *N, standard, low, high N, doc string) *setting {
	return &setting{
		path: path, kind: number, standard: fmt.Sprint(standard), doc: doc,
		allowed: fmt.Sprintf("%d to %d", low, high),
		show:    func() string { return fmt.Sprint(*value) },
		read: func(text string) error {
			n, err := parseWhole(text)
			switch {
			case err != nil:
				return err
			case n < int64(low) || n > int64(high):
				return fmt.Errorf("%d is not within %d to %d", n, low, high)
			}
			*value = N(n)
			return nil
		},
	}
}

func toggles(path string, value *bool, standard bool, doc string) *setting {
	return &setting{
		path: path, kind: toggle, standard: strconv.FormatBool(standard), allowed: "`true` or `false`", doc: doc,
		show: func() string { return strconv.FormatBool(*value) },
		read: func(text string) error {
			if text != "true" && text != "false" {
				return fmt.Errorf("%s is neither true nor false", quote(text))
			}
			*value = text == "true"
			return nil
		},
	}
}

// choices is a setting whose value is one of a few words.
func choices[C any](path string, value *C, standard, doc string, words []string, meaning []C) *setting {
	index := func(text string) int {
		for i, word := range words {
			if word == text {
				return i
			}
		}
		return -1
	}
	shown := standard
	return &setting{
		path: path, kind: text, standard: standard, doc: doc, words: words,
		allowed: "`" + strings.Join(words, "`, `") + "`",
		show:    func() string { return shown },
		read: func(text string) error {
			i := index(text)
			if i < 0 {
				return fmt.Errorf("%s is not one of %s", quote(text), strings.Join(words, ", "))
			}
			*value, shown = meaning[i], text
			return nil
		},
	}
}

// addresses is a setting whose value is host:port.
func addresses(path string, value *string, standard, doc string) *setting {
	return &setting{
		path: path, kind: text, standard: standard, allowed: "`host:port`; without a host every interface, with port 0 any free port", doc: doc,
		show: func() string { return *value },
		read: func(text string) error {
			host, port, err := net.SplitHostPort(text)
			if err == nil {
				_, err = strconv.ParseUint(port, 10, 16)
			}
			if err != nil || net.ParseIP(host) == nil && !isName(host) {
				return fmt.Errorf("%s is not host:port with a port from 0 to 65535", quote(text))
			}
			*value = text
			return nil
		},
	}
}

// parseWhole reads a decimal number. It refuses forms on which YAML readers disagree (0x10, 010,
// 1_000).
func parseWhole(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is not within 64 bits", quote(text))
	case err != nil || strconv.FormatInt(n, 10) != text:
		return 0, fmt.Errorf("%s is not a decimal number", quote(text))
	}
	return n, nil
}

// showDuration formats a duration without the zero parts that time.Duration prints.
func showDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// quote returns a refused value in quotes, unless it may hold a secret: a URL or a long value in
// the wrong place.
func quote(text string) string {
	const long = 32
	if len(text) > long || strings.Contains(text, "://") || strings.Contains(text, "@") {
		return "the value (not shown)"
	}
	return strconv.Quote(text)
}
