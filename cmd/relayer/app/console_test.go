package app

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// page is a browser's page of the console, with its cookie.
type page struct {
	*testing.T
	url    string
	cookie string
}

// do sends a request as the console's own page does, with changes.
func (p *page) do(method, path, body string, changes ...string) (int, []byte) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), method, p.url+path, strings.NewReader(body))
	must(p.T, err)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Content-Type", "application/json")
	if p.cookie != "" {
		req.Header.Set("Cookie", p.cookie)
	}
	for i := 0; i < len(changes); i += 2 {
		req.Header.Set(changes[i], changes[i+1])
		if changes[i] == "Host" {
			req.Host = changes[i+1]
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	must(p.T, err)
	defer res.Body.Close() //nolint:errcheck // read to its end
	answer, err := io.ReadAll(res.Body)
	must(p.T, err)
	for _, c := range res.Cookies() {
		p.cookie = c.Name + "=" + c.Value
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "" {
			p.Errorf("the cookie is %s", c)
		}
	}
	return res.StatusCode, answer
}

func (p *page) want(status int, method, path, body string, changes ...string) []byte {
	p.Helper()
	got, answer := p.do(method, path, body, changes...)
	if got != status {
		p.Errorf("%s %s %v: status %d, want %d: %s", method, path, changes, got, status, answer)
	}
	return answer
}

const signersPath = "/console/api/operate/admin/signers"

// Without keys the pages on loopback read and act, and pages of other origins do not.
func TestConsoleWithoutKeys(t *testing.T) {
	w := serveAll(t, "--api-hosts=watchtower")
	p := &page{T: t, url: w.relayAdmin}
	if shown := p.want(http.StatusOK, http.MethodGet, "/console/session", ""); !strings.Contains(string(shown), `"keyless":true`) {
		t.Errorf("the session is %s", shown)
	}
	for _, path := range []string{signersPath, "/console/api/delivery/v1/transactions", "/console/api/relay/v1/intents", "/console/api/operate/metrics"} {
		p.want(http.StatusOK, http.MethodGet, path, "")
		p.want(http.StatusForbidden, http.MethodGet, path, "", "Sec-Fetch-Site", "cross-site")
		p.want(http.StatusForbidden, http.MethodGet, path, "", "Sec-Fetch-Site", "same-site")
		p.want(http.StatusForbidden, http.MethodGet, path, "", "Sec-Fetch-Site", "none")
		p.want(http.StatusForbidden, http.MethodGet, path, "", "Host", "evil.example")
	}
	p.want(http.StatusNotFound, http.MethodGet, "/console/api/other/v1/intents", "")
	p.want(http.StatusNotFound, http.MethodGet, "/console/../ui/main.js", "")
	halt := `{"scope":{"kind":"deployment"},"reason":"a test"}`
	p.want(http.StatusForbidden, http.MethodPost, "/console/api/operate/admin/safeguards/halt", halt, "Sec-Fetch-Site", "cross-site")
	p.want(http.StatusOK, http.MethodPost, "/console/api/operate/admin/safeguards/halt", halt)
	if shown := p.want(http.StatusOK, http.MethodGet, "/console/api/operate/admin/safeguards", ""); !strings.Contains(string(shown), `"a test"`) {
		t.Errorf("the safeguards are %s", shown)
	}
	p.want(http.StatusOK, http.MethodPost, "/console/api/operate/admin/safeguards/resume", halt)
}

// key makes an API key and returns its token and id.
func (w *running) newKey(t *testing.T, admin, name, scopes, senders string) (token, id string) {
	t.Helper()
	status, answer := send(t, http.MethodPost, w.relayAdmin+"/admin/keys",
		`{"name":"`+name+`","scopes":[`+scopes+`],"senders":[`+senders+`],"ratePerSecond":0,"rateBurst":0,"expiresAt":0}`, admin)
	var made struct{ ID, Token string }
	if err := json.Unmarshal(answer, &made); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s, %v", status, answer, err)
	}
	w.untilKnown(t, made.Token, true)
	return made.Token, made.ID
}

// untilKnown waits until the process has read of a key in the log, or of its end.
func (w *running) untilKnown(t *testing.T, token string, known bool) {
	t.Helper()
	for {
		if status, _ := send(t, http.MethodGet, w.relayAdmin+"/admin/keys", "", token); (status != http.StatusUnauthorized) == known {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the key is never known")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *page) signIn(status int, token string) {
	p.Helper()
	p.want(status, http.MethodPost, "/console/session", "", "Authorization", "Bearer "+token)
}

// With keys a person signs in: audit looks, admin acts. A session ends with its key, and when the person ends
// it; it counts for the console's pages alone.
func TestConsoleSessions(t *testing.T) {
	w := serveAll(t, "--api-hosts=watchtower")
	admin, _ := w.newKey(t, "", "admin", `"admin","audit"`, "")
	audit, auditID := w.newKey(t, admin, "audit", `"audit"`, "")
	submit, _ := w.newKey(t, admin, "submit", `"submit","read","cancel","rpc"`, "")
	bound, _ := w.newKey(t, admin, "bound", `"audit"`, `"0x0000000000000000000000000000000000000001"`)

	p := &page{T: t, url: w.relayAdmin}
	p.want(http.StatusOK, http.MethodGet, "/console/", "") // the pages themselves are public
	p.want(http.StatusUnauthorized, http.MethodGet, signersPath, "")
	p.want(http.StatusUnauthorized, http.MethodGet, signersPath, "", "Authorization", "Bearer "+admin) // a key is no session
	p.signIn(http.StatusForbidden, submit)
	p.signIn(http.StatusForbidden, bound)
	p.signIn(http.StatusUnauthorized, admin[:len(admin)-1]+"x")
	if p.cookie != "" {
		t.Fatalf("a refused key has the cookie %s", p.cookie)
	}

	p.signIn(http.StatusOK, audit)
	looks := p.cookie
	for _, path := range []string{signersPath, "/console/api/delivery/v1/transactions", "/console/api/relay/v1/intents", "/console/api/operate/admin/keys"} {
		p.want(http.StatusOK, http.MethodGet, path, "")
		p.want(http.StatusForbidden, http.MethodGet, path, "", "Sec-Fetch-Site", "cross-site")
	}
	halt := `{"scope":{"kind":"deployment"},"reason":"a test"}`
	p.want(http.StatusForbidden, http.MethodPost, "/console/api/operate/admin/safeguards/halt", halt)
	for _, url := range []string{w.relayAdmin + "/admin/signers", w.relayAPI + "/v1/transactions", w.relay + "/v1/intents"} {
		(&page{T: t, url: url, cookie: looks}).want(http.StatusUnauthorized, http.MethodGet, "", "", "Sec-Fetch-Site", "none")
	}
	for what, cookie := range map[string]string{"cut": looks[:len(looks)-2], "changed": looks[:len(looks)-1] + "_", "empty": "watchtower_console="} {
		if status, _ := (&page{T: t, url: w.relayAdmin, cookie: cookie}).do(http.MethodGet, signersPath, ""); status != http.StatusUnauthorized {
			t.Errorf("a cookie that was %s: status %d", what, status)
		}
	}

	acts := &page{T: t, url: w.relayAdmin}
	acts.signIn(http.StatusOK, admin)
	acts.want(http.StatusOK, http.MethodPost, "/console/api/operate/admin/safeguards/halt", halt)
	acts.want(http.StatusOK, http.MethodPost, "/console/api/operate/admin/safeguards/resume", halt)
	kept := acts.cookie
	acts.want(http.StatusNoContent, http.MethodDelete, "/console/session", "")
	for { // until the process has read of it in the log
		acts.cookie = kept // as a thief would have it
		if status, _ := acts.do(http.MethodGet, signersPath, ""); status == http.StatusUnauthorized {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal("an ended session counts")
		case <-time.After(5 * time.Millisecond):
		}
	}

	status, answer := send(t, http.MethodDelete, w.relayAdmin+"/admin/keys/"+auditID, "", admin)
	if status != http.StatusNoContent {
		t.Fatalf("revoke: %d %s", status, answer)
	}
	w.untilKnown(t, audit, false)
	p.cookie = looks
	p.want(http.StatusUnauthorized, http.MethodGet, signersPath, "")
}
