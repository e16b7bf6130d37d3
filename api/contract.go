package api

import (
	_ "embed"
	"net/http"
	"strconv"
	"sync"

	"github.com/goccy/go-yaml"
)

// contractYAML is the contract as written.
//
//go:embed openapi.yaml
var contractYAML []byte

// published holds the contract as JSON and as an HTML page.
type published struct{ json, page []byte }

// publishing returns a function that renders the contract on its first call.
func publishing() func() (published, error) {
	return sync.OnceValues(func() (p published, err error) {
		if p.json, err = yaml.YAMLToJSON(contractYAML); err != nil {
			return p, err
		}
		p.page, err = renderContract(contractYAML)
		return p, err
	})
}

// contractCache lets caches keep the contract for five minutes. It changes only with a new
// version of the program.
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

// docs answers GET /docs: the contract as an HTML page. The page loads no other resource, and
// its policy allows none.
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
	_, _ = w.Write(content) // an error means that the client is gone
	return nil
}
