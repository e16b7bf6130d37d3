package promises

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Life is one client's part of a run. Its keys are names chosen by the client, the same in every
// run with one seed.
type Life struct {
	Ends    map[string]string `json:"ends"`    // the end of each transaction and intent
	Answers map[string]string `json:"answers"` // the answer to each request: its status, and the request
	// Executed are the client's transactions and intents that the chain has executed, sorted.
	Executed []string `json:"executed"`
	// Sends are the delays from eligibility to the first send, one per transaction. Submits are
	// the delays from an intent's acceptance to the first send of an attempt.
	Sends   []time.Duration `json:"sends"`
	Submits []time.Duration `json:"submits,omitempty"`
}

// Undisturbed checks P36 for outcomes and delays. alone and beside are one client's life in two
// runs with one seed; only the second run has hostile clients. The 99th percentile of a delay may
// double, plus one poll.
func Undisturbed(alone, beside Life, poll time.Duration) (found []Violation) {
	broken := func(format string, args ...any) {
		found = append(found, Violation{Promise: P36, Evidence: fmt.Sprintf(format, args...)})
	}
	differ := func(what string, a, b map[string]string) {
		all := maps.Clone(a)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, b)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if a[name] != b[name] {
				broken("the %s of %s is %q without hostile clients, %q with them", what, name, a[name], b[name])
			}
		}
	}
	differ("end", alone.Ends, beside.Ends)
	differ("answer", alone.Answers, beside.Answers)
	if !slices.Equal(alone.Executed, beside.Executed) {
		broken("the chain executes %d without hostile clients, and others with them, %d", len(alone.Executed), len(beside.Executed))
	}
	for _, delay := range []struct {
		what          string
		alone, beside []time.Duration
	}{
		{"from eligible to the first send", alone.Sends, beside.Sends},
		{"from accepted to submitted", alone.Submits, beside.Submits},
	} {
		without, with := Percentile(delay.alone, 99), Percentile(delay.beside, 99)
		if most := 2*without + poll; with > most {
			broken("%s it takes %s (p99 of %d) without hostile clients, and %s (of %d) with them: more than %s",
				delay.what, without, len(delay.alone), with, len(delay.beside), most)
		}
	}
	return found
}

// Percentile returns the smallest of the durations that is at least as long as the given
// percentage of them; 0 if there are none.
func Percentile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max((len(sorted)*percent+99)/100, 1)-1]
}

// Secrets checks P36 for secrecy: one client's submitted data is shown to no other client. The
// zero Secrets are ready to use.
type Secrets struct {
	known map[string]*secret // by the end of their text
	cases Cases
}

// secret is a value that may be shown only to its owners.
type secret struct {
	what   string
	text   string // in hex
	owners []string
	public bool // nodes have it, and show it to everybody
}

// secretBytes is the least length of a secret that cannot occur by chance, and the length of the
// suffix by which it is looked up.
const secretBytes = 16

// Keep registers a client's secret. A value submitted by several clients belongs to each of them.
func (s *Secrets) Keep(client, what string, value []byte) {
	if len(value) < secretBytes {
		panic(fmt.Sprintf("promise: a secret of %d bytes cannot be told from chance", len(value)))
	}
	text := hex.EncodeToString(value)
	if s.known == nil {
		s.known = map[string]*secret{}
	}
	end := endOf(text)
	if s.known[end] == nil {
		s.known[end] = &secret{what: what, text: text}
	}
	if v := s.known[end]; !slices.Contains(v.owners, client) {
		v.owners = append(v.owners, client)
	}
}

// Publish records that nodes have a value: their answers may show it to every client.
func (s *Secrets) Publish(value []byte) {
	if len(value) < secretBytes {
		return
	}
	if v := s.known[endOf(hex.EncodeToString(value))]; v != nil {
		v.public = true
	}
}

func endOf(text string) string { return text[len(text)-2*secretBytes:] }

// Cases returns the cases so far.
func (s *Secrets) Cases() Cases { return s.cases }

// Shown is a piece of data that a client was shown.
type Shown struct {
	Client  string
	Request string // the client's whole request; repeating its content reveals nothing
	Body    []byte
	Node    bool // may contain a node's answer, which is public
	// Foreign is a value that the request asks for by its name. If it is a secret of other
	// clients, Status must be 404 or another refusal that reveals nothing.
	Foreign []byte
	Status  int
}

// Shown judges an answer, a part of a stream, or a webhook delivery.
func (s *Secrets) Shown(a Shown) (found []Violation) {
	s.cases.Add(P36)
	broken := func(v *secret, format string, args ...any) {
		found = append(found, Violation{P36, "", eventlog.Position(0), fmt.Sprintf("client %q ", a.Client) +
			fmt.Sprintf(format, args...) + fmt.Sprintf(": %s 0x%s of %q", v.what, cut(v.text), v.owners)})
	}
	if v := s.of(a.Foreign); v != nil && !slices.Contains(v.owners, a.Client) && !silent(a.Status) {
		broken(v, "got status %d for other clients' data", a.Status)
	}
	request := strings.ToLower(a.Request)
	told := map[*secret]bool{}
	for v := range s.in(bytes.ToLower(a.Body)) {
		if told[v] || slices.Contains(v.owners, a.Client) || a.Node && v.public || strings.Contains(request, v.text) {
			continue
		}
		told[v] = true
		broken(v, "was shown other clients' data")
	}
	slices.SortFunc(found, func(x, y Violation) int { return cmp.Compare(x.Evidence, y.Evidence) })
	return found
}

// silent reports whether an HTTP status reveals nothing about the requested value: not found,
// unauthorized, too many requests, or unavailable.
func silent(status int) bool {
	const notFound, unauthorized, tooMany, unavailable = 404, 401, 429, 500
	return status == notFound || status == unauthorized || status == tooMany || status >= unavailable
}

func cut(text string) string { return text[:min(len(text), 64)] }

// of returns the secret with a value; nil if there is none.
func (s *Secrets) of(value []byte) *secret {
	if len(value) < secretBytes {
		return nil
	}
	return s.known[endOf(hex.EncodeToString(value))]
}

// in yields the secrets that occur in a text, in hex.
func (s *Secrets) in(text []byte) func(yield func(*secret) bool) {
	return func(yield func(*secret) bool) {
		begin := 0
		for end := 0; end <= len(text); end++ {
			if end-begin >= 2*secretBytes {
				v := s.known[string(text[end-2*secretBytes:end])]
				if v != nil && bytes.HasSuffix(text[begin:end], []byte(v.text)) && !yield(v) {
					return
				}
			}
			if end < len(text) && !isHex(text[end]) {
				begin = end + 1
			}
		}
	}
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
