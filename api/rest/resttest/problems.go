package resttest

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Unlinked returns a text of the documentation without the targets of its links, as the table of
// problems has it.
func Unlinked(text string) string { return link.ReplaceAllString(text, "$1") }

// CheckProblemPages checks that a listener explains each of the codes: as HTML to
// browsers, and as JSON to all others. get sends a request with headers.
func CheckProblemPages(t *testing.T, codes []string, get func(target string, header ...string) (status int, answered http.Header, body string)) {
	t.Helper()
	for _, code := range codes {
		target := "/problems/" + code
		status, header, body := get(target)
		if status != http.StatusOK || header.Get("Content-Type") != "application/json" || !strings.Contains(body, `"code":"`+code+`"`) {
			t.Errorf("%s answered %d %s", target, status, body)
		}
		status, header, body = get(target, "Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
		if status != http.StatusOK || header.Get("Content-Type") != "text/html; charset=utf-8" || header.Get("Vary") != "Accept" ||
			!strings.Contains(body, "<code>"+code+"</code>") || strings.Contains(body, "`") || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s answered a browser with %d %v %s", target, status, header, body)
		}
	}
	for _, target := range []string{"/problems/no-such", "/problems/%zz", "/problems/%2e%2e", "/problems/Internal"} {
		if status, _, body := get(target); status != http.StatusNotFound && status != http.StatusBadRequest {
			t.Errorf("%s answered %d %s", target, status, body)
		}
	}
}
