package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

// TestCookie refuses cookies of other secrets, of keys that may not look, and when their time is over.
func TestCookie(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	looks := access.KeyID{1}
	state := access.State{Keys: map[access.KeyID]access.Entry{
		looks: {Key: access.Key{ID: looks, Scopes: []access.Scope{access.Audit}}},
		{2}:   {Key: access.Key{ID: access.KeyID{2}, Scopes: []access.Scope{access.Read}}},
	}}
	k := &console{Config: Config{API: rest.Config{Access: rest.Access{Keys: func() access.State { return state }}}, Now: func() time.Time { return now }}, seal: newSeal(make([]byte, SecretBytes))}
	other := newSeal(bytes.Repeat([]byte{1}, SecretBytes))
	request := func(value string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: cookieName, Value: value})
		return r
	}
	good := on{key: looks, id: access.SessionID{7}, end: now.Add(time.Hour)}
	if got, ok := k.cookie(request(k.seal.close(good))); !ok || got != good {
		t.Errorf("got %+v, %t", got, ok)
	}
	over, weak, unknown := good, good, good
	over.end, weak.key, unknown.key = now, access.KeyID{2}, access.KeyID{3}
	for what, value := range map[string]string{
		"over": k.seal.close(over), "of a weak key": k.seal.close(weak), "of an unknown key": k.seal.close(unknown), "of another secret": other.close(good), "no base64": "%", "short": "AAAA",
	} {
		if _, ok := k.cookie(request(value)); ok {
			t.Errorf("a cookie that is %s counts", what)
		}
	}
	state.Ended = map[access.SessionID]time.Time{good.id: good.end}
	if _, ok := k.cookie(request(k.seal.close(good))); ok {
		t.Error("an ended session counts")
	}
}

// TestPages serves every file with the policy, once, and again only when it has changed.
func TestPages(t *testing.T) {
	h := pages()
	for _, path := range []string{"/", "/main.js", "/style.css", "/vendor/uplot.js", "/icon.svg", "/pages/overview.js"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || w.Header().Get("Content-Security-Policy") != policy || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: status %d, headers %v", path, w.Code, w.Header())
		}
		again := httptest.NewRequest(http.MethodGet, path, nil)
		again.Header.Set("If-None-Match", w.Header().Get("ETag"))
		second := httptest.NewRecorder()
		if h.ServeHTTP(second, again); second.Code != http.StatusNotModified || second.Body.Len() > 0 {
			t.Errorf("%s again: status %d", path, second.Code)
		}
	}
	for _, path := range []string{"/nothing.js", "/../console.go", "/pages"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path
		missing := httptest.NewRecorder()
		if h.ServeHTTP(missing, r); missing.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, missing.Code)
		}
	}
}

// mostBytes is how much all pages may weigh, compressed.
const mostBytes = 250_000

// TestWeight keeps the pages small, and free of what the policy forbids.
func TestWeight(t *testing.T) {
	var sum bytes.Buffer
	err := fs.WalkDir(files, "ui", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		z, err := gzip.NewWriterLevel(&sum, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(content); err != nil {
			return err
		}
		if strings.Contains(name, "vendor") {
			return z.Close()
		}
		for _, forbidden := range []string{"eval(", "innerHTML", "dangerouslySetInnerHTML", "document.write", "http://", "https://", "<script>", "style=\""} {
			if bytes.Contains(content, []byte(forbidden)) && !bytes.Contains(content, []byte("http://www.w3.org/2000/svg")) && !strings.Contains(string(content), "--webhook https://…") {
				t.Errorf("%s contains %s", name, forbidden)
			}
		}
		return z.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Len() > mostBytes {
		t.Errorf("the pages weigh %d bytes, compressed", sum.Len())
	}
	t.Logf("%d bytes, compressed", sum.Len())
}

// TestVendored holds the files of others at the versions that vendor/LICENSES.txt names, byte by byte.
func TestVendored(t *testing.T) {
	for name, want := range map[string]string{
		"htm-preact.js":   "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
		"signals-core.js": "a2261b3791bb800e7b268783e459a362f5da84f9c038be9b9509f3a6c632ad34",
		"uplot.js":        "5dd9b3281aa64b461b42d9945f6adb2649d346502b12281a9ae0d46599a80eba",
		"uplot.css":       "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	} {
		content, err := files.ReadFile("ui/vendor/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has the digest %x", name, sum)
		}
	}
}
