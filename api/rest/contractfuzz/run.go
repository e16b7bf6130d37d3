package contractfuzz

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Target is a running API.
type Target struct {
	Base   string // such as http://127.0.0.1:8420
	Header http.Header
	// Known are values for parameters and members, by their names. "raw" are signed transactions.
	Known map[string][]any
	// Skip, when set, leaves out operations, named as "METHOD path".
	Skip func(operation string) bool
	// Between, when set, is called between requests.
	Between func(n int)
}

// patience is how long an answer may take. Streams without an end are cut after streamed.
const (
	patience = 20 * time.Second
	streamed = 100 * time.Millisecond
)

// Tally counts what a run has sent.
type Tally struct {
	Requests int
	Answers  map[string]int // by operation and status
}

// Run sends requests while more returns true, and calls find for each finding. Findings of one kind have
// one cause as a rule.
func (c *Contract) Run(ctx context.Context, target Target, seed uint64, more func(n int) bool, find func(kind, finding string)) Tally {
	m := &maker{Contract: c, random: rand.New(rand.NewPCG(seed, 0)), pool: map[string][]any{}, patterns: map[string]*regexp.Regexp{}} //nolint:gosec // to be repeated
	for name, values := range target.Known {
		m.pool[name] = slices.Clone(values)
	}
	tally := Tally{Answers: map[string]int{}}
	for ; more(tally.Requests) && ctx.Err() == nil; tally.Requests++ {
		o := pick(m, c.operations)
		if target.Skip != nil && target.Skip(o.method+" "+o.path) {
			continue
		}
		q := m.request(o)
		status, trouble := m.judge(ctx, target, o, q)
		tally.Answers[fmt.Sprintf("%s %s %d", o.method, o.path, status)]++
		if trouble != "" {
			kind, _, _ := strings.Cut(trouble, ": {")
			find(fmt.Sprintf("%s %s %.120s", o.method, o.path, kind), fmt.Sprintf("seed %d, request %d: %s\n%s", seed, tally.Requests, trouble, q))
		}
		if target.Between != nil {
			target.Between(tally.Requests)
		}
	}
	return tally
}

// request is a request to send.
type request struct {
	method, target string
	header         http.Header
	body           []byte
	value          any  // of the body; nil if there is none, or it is not JSON
	endless        bool // its answer may be a stream without an end
}

func (q request) String() string {
	text := fmt.Sprintf("%s %s", q.method, q.target)
	for name, values := range q.header {
		text += fmt.Sprintf("\n%s: %.300q", name, values)
	}
	if q.body != nil {
		text += fmt.Sprintf("\n\n%.2000s", q.body)
	}
	return text
}

func (m *maker) request(o operation) request {
	q := request{method: o.method, header: http.Header{}}
	spoiled := m.chance(50)
	path, query := o.path, url.Values{}
	for _, p := range o.parameters {
		name, in := p["name"].(string), p["in"].(string)
		if p["required"] != true && !m.chance(35) {
			continue
		}
		var texts []string
		v := m.value(name, p["schema"].(object), 0)
		if spoiled && m.chance(30) {
			v = m.spoil(v, 0)
		}
		if all, is := v.([]any); is {
			for _, x := range all {
				texts = append(texts, textOf(x))
			}
		} else {
			texts = []string{textOf(v)}
		}
		switch in {
		case "path":
			text := strings.Join(texts, ",")
			if text == "" {
				text = "-" // another path would be another route
			}
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(text), 1)
		case "query":
			query[name] = texts
		case "header":
			for _, text := range texts {
				if isHeader(text) {
					q.header.Add(name, text)
				}
			}
		}
	}
	if spoiled && m.chance(10) {
		query.Add(m.word(), m.word())
	}
	if query.Has("wait") { // so that it does not wait long
		query.Set("timeout", pick(m, []string{"0", "0", "1ms", "5ms", "x", "-1s", "56", ""}))
	}
	if q.target = path; len(query) > 0 {
		q.target += "?" + query.Encode()
	}
	if strings.HasSuffix(o.path, "/events") && strings.Contains(fmt.Sprint(o.is["responses"]), "event-stream") {
		q.endless = true
		if m.chance(50) {
			q.header.Set("Accept", "application/x-ndjson")
		}
	}
	m.body(&q, o, spoiled)
	return q
}

func (m *maker) body(q *request, o operation, spoiled bool) {
	described, has := o.is["requestBody"].(object)
	if o.method == http.MethodPost || o.method == http.MethodPut {
		q.header.Set("Content-Type", "application/json")
	}
	if !has || described["required"] != true && m.chance(30) {
		return
	}
	schema := described["content"].(object)["application/json"].(object)["schema"].(object)
	v := m.value("", schema, 0)
	for spoiled {
		v = m.spoil(v, 0)
		spoiled = m.chance(40)
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("contractfuzz: %v cannot be encoded: %v", v, err))
	}
	q.body, q.value = text, decoded(text)
	if !m.chance(95) { // text that is no JSON, or of another type
		q.value = nil
		switch m.random.IntN(3) {
		case 0:
			q.body = text[:m.random.IntN(len(text))]
		case 1:
			q.body = append(slices.Clone(text), text...)
		default:
			q.header.Set("Content-Type", "text/plain")
		}
	}
}

func textOf(v any) string {
	if v == nil {
		return ""
	}
	if text, is := v.(string); is {
		return text
	}
	return fmt.Sprint(v)
}

func isHeader(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// decoded is JSON with numbers as json.Number; nil if it is none.
func decoded(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// judge sends a request, and returns what is wrong with the answer, if anything is.
func (m *maker) judge(ctx context.Context, target Target, o operation, q request) (status int, trouble string) {
	within := patience
	if q.endless {
		within = streamed
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, target.Base+q.target, bytes.NewReader(q.body))
	if err != nil {
		return 0, fmt.Sprintf("it cannot be sent: %v", err)
	}
	for _, header := range []http.Header{target.Header, q.header} {
		for name, values := range header {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	res, err := http.DefaultClient.Do(r)
	switch {
	case err != nil && q.endless:
		return 0, "" // it had nothing to send yet
	case err != nil:
		return 0, fmt.Sprintf("no answer: %v", err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(res.Body)
	if err != nil && !q.endless {
		return res.StatusCode, fmt.Sprintf("the answer was cut: %v", err)
	}
	if etag := res.Header.Get("ETag"); etag != "" {
		m.learn("etag", etag)
	}
	if trouble = m.fault(o, q, res, body); trouble != "" {
		trouble = fmt.Sprintf("answered %d %s: %s: %.2000s", res.StatusCode, res.Header.Get("Content-Type"), trouble, body)
	}
	return res.StatusCode, trouble
}

// refusesItems reports whether an answer to a list refuses one of its items.
func refusesItems(v any) bool {
	answer, _ := v.(object)
	return slices.ContainsFunc(list(answer["results"]), func(result any) bool { return result.(object)["ok"] == false })
}

// fault returns why the contract does not have an answer; empty if it has.
func (m *maker) fault(o operation, q request, res *http.Response, body []byte) string {
	status := fmt.Sprint(res.StatusCode)
	if status == "500" {
		return "the service failed"
	}
	at := o.pointer + pointer("responses", status)
	described, has := o.is["responses"].(object)[status].(object)
	if !has {
		return "the contract does not have the status"
	}
	if ref, is := described["$ref"].(string); is {
		at, described = strings.TrimPrefix(ref, "#"), m.follow(described)
	}
	content, _ := described["content"].(object)
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	switch {
	case len(content) == 0 && len(body) > 0:
		return "the contract has no body"
	case len(content) == 0:
		return ""
	case content[kind] == nil:
		return "the contract does not have the media type"
	case !strings.Contains(kind, "json"):
		return ""
	}
	texts := [][]byte{body}
	if kind == "application/x-ndjson" {
		texts = bytes.SplitAfter(body, []byte("\n"))
		texts = texts[:len(texts)-1] // what follows the last break is no line
	}
	for _, text := range texts {
		v := decoded(text)
		if err := m.valid(at+pointer("content", kind, "schema"), v); err != nil {
			return fmt.Sprintf("the contract has no such body: %v", err)
		}
		m.remember(v)
	}
	if res.StatusCode < 300 && q.value != nil && !slices.Contains(o.tags, any("json-rpc")) && !refusesItems(decoded(body)) {
		if err := m.valid(o.pointer+pointer("requestBody", "content", "application/json", "schema"), q.value); err != nil {
			return fmt.Sprintf("it accepted a body that the contract refuses: %v", err)
		}
	}
	return ""
}
