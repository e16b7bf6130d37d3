package rest

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/eventlog"
)

//go:embed problempage.html
var problemTemplate string

// problemPath is the path of the page of a kind of problem, to which type of a [Problem] leads.
const problemPath = "/problems/{code}"

// problemPage is a row of the table that maps errors to HTTP, as GET /problems/{code} shows it.
type problemPage struct {
	Type      string `json:"type"`
	Code      string `json:"code"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Retryable bool   `json:"retryable"`
	Meaning   string `json:"meaning"`
}

// Problems returns the route that explains the codes of problems: as HTML to people, and as JSON to
// programs. It is public.
func (f *Front) Problems() []Route {
	return []Route{{Method: http.MethodGet, Path: problemPath, Scope: Public, Answer: func(r Request) error {
		return f.a.showProblem(r.w, r.Request)
	}}}
}

// showProblem answers GET /problems/{code}.
func (a *api) showProblem(w http.ResponseWriter, r *http.Request) error {
	code, err := url.PathUnescape(mux.Vars(r)["code"])
	if err != nil {
		return ErrNotFound.Because("the path is not well escaped")
	}
	k, known := kindOf(eventlog.Refusal(code), a.more)
	if !known {
		return ErrNotFound.Because("no problem has the code %s", Quote(code))
	}
	p := filled(k.Code, "", a.more...)
	page := problemPage{p.Type, p.Code, p.Title, p.Status, p.Retryable, k.Meaning}
	w.Header().Set("Vary", "Accept")
	if !prefersHTML(r.Header.Values("Accept")) {
		content, err := encode(page)
		if err != nil {
			return err
		}
		return document(w, "application/json", content)
	}
	content, err := page.html()
	if err != nil {
		return err
	}
	ownStyleOnly(w.Header())
	return document(w, "text/html; charset=utf-8", content)
}

func (p problemPage) html() ([]byte, error) {
	t, err := template.New("problem").Parse(problemTemplate)
	if err != nil {
		return nil, fmt.Errorf("the page of a problem: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		problemPage
		Style template.CSS
		Text  template.HTML
	}{p, template.CSS(pageStyle), prose(p.Meaning)}) //nolint:gosec // ours
	return out.Bytes(), err
}

// prefersHTML reports whether the header Accept names HTML, and no kind of JSON with a higher weight
// (RFC 9110, section 12.5.1). Browsers name HTML; programs that accept everything get JSON.
func prefersHTML(accept []string) bool {
	html, json := 0.0, 0.0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, given := params["q"]; given {
			if weight, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		switch media {
		case "text/html", "application/xhtml+xml":
			html = max(html, weight)
		case "application/json", "application/problem+json":
			json = max(json, weight)
		}
	}
	return html > json
}
