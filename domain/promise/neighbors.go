package promise

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/event"
)

// Life is one client's part of a run. Its keys are names that the client gives, the same
// in every run from one seed.
type Life struct {
	Ends    map[string]string `json:"ends"`    // the end of each transaction and intent
	Answers map[string]string `json:"answers"` // to each request: the status, and what the client asked for
	// Executed are the transactions and intents that the chain has executed, sorted.
	Executed []string `json:"executed"`
	// Sends are the times from eligible to the first send, one for each transaction;
	// Submits those from the acceptance of an intent to the first send of an attempt.
	Sends   []time.Duration `json:"sends"`
	Submits []time.Duration `json:"submits,omitempty"`
}

// Undisturbed is P36 for outcomes and delays: alone and beside are one client's life in
// two runs from one seed, of which only the second has hostile clients. A delay's 99th
// percentile may double, and grow by one poll.
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

// Percentile is the smallest of some durations that so many in a hundred do not exceed;
// 0 of none.
func Percentile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max((len(sorted)*percent+99)/100, 1)-1]
}

// Secrets is P36 for secrecy: what one client has handed in is shown to no other. The
// zero Secrets are ready.
type Secrets struct {
	known map[string]*secret // by the end of their text
	cases Cases
}

// secret is a value of which only its owners may be shown anything.
type secret struct {
	what   string
	text   string // in hex
	owners []string
	public bool // nodes have it, and tell everybody
}

// secretBytes is how long a value is at least that is told from chance, and by how much
// of its end it is looked up.
const secretBytes = 16

// Keep makes a value a secret of a client. What several clients hand in belongs to each
// of them.
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

// Publish says that nodes have a value: their answers may show it to everybody.
func (s *Secrets) Publish(value []byte) {
	if len(value) < secretBytes {
		return
	}
	if v := s.known[endOf(hex.EncodeToString(value))]; v != nil {
		v.public = true
	}
}

func endOf(text string) string { return text[len(text)-2*secretBytes:] }

// Cases are those that were judged so far.
func (s *Secrets) Cases() Cases { return s.cases }

// Shown is something that a client was shown.
type Shown struct {
	Client  string
	Request string // all that the client said in it; what is only repeated tells it nothing
	Body    []byte
	Node    bool // nodes may have answered, whom everybody may ask
	// Foreign is a value that the request asks for by its name. When it is a secret of
	// other clients, Status has to be 404, or that of a refusal that says nothing of it.
	Foreign []byte
	Status  int
}

// Shown judges an answer, or a part of a stream, or what a webhook was sent.
func (s *Secrets) Shown(a Shown) (found []Violation) {
	s.cases.Add(P36)
	broken := func(v *secret, format string, args ...any) {
		found = append(found, Violation{P36, "", event.Position(0), fmt.Sprintf("client %q ", a.Client) +
			fmt.Sprintf(format, args...) + fmt.Sprintf(": %s 0x%s of %q", v.what, cut(v.text), v.owners)})
	}
	if v := s.of(a.Foreign); v != nil && !slices.Contains(v.owners, a.Client) && !silent(a.Status) {
		broken(v, "was answered %d for what belongs to others", a.Status)
	}
	request := strings.ToLower(a.Request)
	told := map[*secret]bool{}
	for v := range s.in(bytes.ToLower(a.Body)) {
		if told[v] || slices.Contains(v.owners, a.Client) || a.Node && v.public || strings.Contains(request, v.text) {
			continue
		}
		told[v] = true
		broken(v, "was shown what belongs to others")
	}
	slices.SortFunc(found, func(x, y Violation) int { return cmp.Compare(x.Evidence, y.Evidence) })
	return found
}

// silent reports whether an HTTP status tells nothing of what was asked for: it is not
// there, the client may not come in, it asks too often, or nobody can tell just now.
func silent(status int) bool {
	const notFound, unauthorized, tooMany, unavailable = 404, 401, 429, 500
	return status == notFound || status == unauthorized || status == tooMany || status >= unavailable
}

func cut(text string) string { return text[:min(len(text), 64)] }

// of finds a secret by its value; nil when it is none.
func (s *Secrets) of(value []byte) *secret {
	if len(value) < secretBytes {
		return nil
	}
	return s.known[endOf(hex.EncodeToString(value))]
}

// in yields the secrets that a text has in it, in hex.
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
