package api

import (
	_ "embed"
	"net/http"
	"strconv"
	"sync"

	"github.com/goccy/go-yaml"
)

// contractYAML is the contract as it is written.
//
//go:embed openapi.yaml
var contractYAML []byte

// published is the contract in the forms in which it is served.
type published struct{ json, page []byte }

// publishing makes them when they are first asked for.
func publishing() func() (published, error) {
	return sync.OnceValues(func() (p published, err error) {
		if p.json, err = yaml.YAMLToJSON(contractYAML); err != nil {
			return p, err
		}
		p.page, err = renderContract(contractYAML)
		return p, err
	})
}

// contractCache is how long a contract may be kept: it changes with the program only.
const contractCache = "public, max-age=300"

// openapi answers GET /openapi.yaml.
func (a *api) openapi(w http.ResponseWriter, _ *http.Request) error {
	return document(w, "application/yaml", contractYAML) // RFC 9512
}

// openapiJSON answers GET /openapi.json.
func (a *api) openapiJSON(w http.ResponseWriter, _ *http.Request) error {
	p, err := a.published()
	if err != nil {
		return err
	}
	return document(w, "application/json", p.json)
}

// docs answers GET /docs: the contract for people. The page needs nothing but
// itself, and may load nothing.
func (a *api) docs(w http.ResponseWriter, _ *http.Request) error {
	p, err := a.published()
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Security-Policy",
		"default-src 'none'; style-src '"+pageStyleHash()+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	return document(w, "text/html; charset=utf-8", p.page)
}

func document(w http.ResponseWriter, contentType string, content []byte) error {
	header := w.Header()
	header.Set("Cache-Control", contractCache)
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // the client has gone: there is nobody to tell
	return nil
}
