package delivery

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// served gets a document that is not JSON, or that the contract cannot check.
func (s *stack) served(path, contentType string) string {
	s.t.Helper()
	res, err := s.send(http.MethodGet, path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if res.status != http.StatusOK || res.header.Get("Content-Type") != contentType || res.header.Get("Cache-Control") != "public, max-age=300" {
		s.t.Fatalf("%s answered %d, %v", path, res.status, res.header)
	}
	return string(res.body)
}

// The served contract is the contract that the tests check answers against.
func TestContractIsServed(t *testing.T) {
	s := newStack(t)
	var fromYAML, fromJSON, want any
	if err := yaml.Unmarshal([]byte(s.served("/openapi.yaml", "application/yaml")), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(s.served("/openapi.json", "application/json")), &fromJSON); err != nil {
		t.Fatal(err)
	}
	normal := func(v any) (out any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	want = normal(contract(t))
	for name, got := range map[string]any{"yaml": normal(fromYAML), "json": normal(fromJSON)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// The page shows every operation and schema, its links have targets, and it loads no other
// resource.
func TestDocsPage(t *testing.T) {
	s := newStack(t)
	page := s.served("/docs", "text/html; charset=utf-8")
	var ids []string
	for _, found := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if slices.Contains(ids, found[1]) {
			t.Errorf("%s is there twice", found[1])
		}
		ids = append(ids, found[1])
	}
	for _, found := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if !slices.Contains(ids, found[1]) {
			t.Errorf("a link leads to %s, which is not there", found[1])
		}
	}
	doc := contract(t)
	for _, methods := range at(t, doc, "paths") {
		for _, operation := range methods.(object) {
			if id := operation.(object)["operationId"].(string); !slices.Contains(ids, id) {
				t.Errorf("operation %s is not shown", id)
			}
		}
	}
	for name := range at(t, doc, "components", "schemas") {
		if !slices.Contains(ids, "schema-"+name) {
			t.Errorf("schema %s is not shown", name)
		}
	}
	for _, never := range []string{"<script", "src=", "url(", "@import", "http:", "ZgotmplZ", " style=", "<nil>"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %s", never)
		}
	}
	res, err := http.Get("http://" + s.addr + "/docs")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	policy := res.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %s", policy)
	}
	style := page[strings.Index(page, "<style>")+len("<style>") : strings.Index(page, "</style>")]
	if sum := sha256.Sum256([]byte(style)); !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Error("the style is not the one that the policy lets through")
	}
}
