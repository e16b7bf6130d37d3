package rest

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/goccy/go-yaml"
)

// published holds the contract as JSON and as an HTML page.
type published struct{ json, page []byte }

// contractCache lets caches keep the contract for five minutes. It changes only with a new
// version of the program.
const contractCache = "public, max-age=300"

// Contract returns the routes that show an API's contract, as it is written in YAML, as JSON and as an
// HTML page. They are public.
func (f *Front) Contract(written []byte) []Route {
	rendered := publishing(written)
	return []Route{
		{Method: http.MethodGet, Path: "/openapi.yaml", Scope: Public, Answer: func(r Request) error {
			return r.Document("application/yaml", written) // RFC 9512
		}},
		{Method: http.MethodGet, Path: "/openapi.json", Scope: Public, Answer: func(r Request) error {
			p, err := rendered()
			if err != nil {
				return err
			}
			return r.Document("application/json", p.json)
		}},
		{Method: http.MethodGet, Path: "/docs", Scope: Public, Answer: func(r Request) error { return r.page(rendered) }},
	}
}

// publishing returns a function that renders the contract on its first call.
func publishing(written []byte) func() (published, error) {
	return sync.OnceValues(func() (p published, err error) {
		if p.json, err = yaml.YAMLToJSON(written); err != nil {
			return p, err
		}
		p.page, err = renderContract(written)
		return p, err
	})
}

// page answers with the contract as an HTML page. The page loads no other resource, and its
// policy allows none.
func (r Request) page(rendered func() (published, error)) error {
	p, err := rendered()
	if err != nil {
		return err
	}
	ownStyleOnly(r.Answering())
	return r.Document("text/html; charset=utf-8", p.page)
}

// ownStyleOnly sets the policy of a page that loads nothing and has the style of package rest.
func ownStyleOnly(header http.Header) {
	header.Set("Content-Security-Policy",
		"default-src 'none'; style-src '"+pageStyleHash()+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
}

func document(w http.ResponseWriter, contentType string, content []byte) error {
	header := w.Header()
	header.Set("Cache-Control", contractCache)
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // an error means that the client is gone
	return nil
}
