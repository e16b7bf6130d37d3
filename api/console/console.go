// Package console serves the operators' console: pages in a browser that show what the service does, and
// send the commands that operators have anyway.
//
// It is served on the operators' listener, and has one origin: the pages read and act through it, by the
// routes of the other APIs, and by nothing else. A person signs in with an API key, which the browser
// exchanges for a cookie. The pages themselves are public: they show nothing without a session.
//
// Of the packages of api it imports rest alone. The handlers that it passes requests to are given to it.
package console

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
)

// Path is where the console is served.
const Path = "/console"

// Config holds the dependencies of the console.
type Config struct {
	// API is the configuration that all APIs share. Its Access decides who may sign in.
	API  rest.Config
	Keys commands.Keys
	// Secret seals the cookies: [SecretBytes] bytes. Replicas behind one address must share it.
	Secret []byte
	Random io.Reader
	Now    func() time.Time
	// Parts are the handlers of the APIs, by the name in the console's paths: delivery, relay, operate.
	Parts map[string]http.Handler
	// Program is what the pages say about the program.
	Program Program
}

// Program is what the pages say about the program.
type Program struct {
	Name    string `json:"name"` // watchtower or relayer
	Version string `json:"version"`
	Build   string `json:"build"`
}

// console is the configuration, with the cookies' seal.
type console struct {
	Config
	seal  seal
	pages http.Handler
	front http.Handler
}

// New returns the handler of everything below [Path]. It panics if the configuration cannot work.
func New(c Config) http.Handler {
	if c.API.Access.Keys == nil || c.Now == nil || c.Random == nil {
		panic("console: the keys, the clock or the randomness is missing")
	}
	k := &console{Config: c, seal: newSeal(c.Secret), pages: pages()}
	k.front = rest.NewFront(c.API).Handler([]rest.Route{
		{Method: http.MethodGet, Path: Path + "/session", Scope: rest.Public, Answer: k.session},
		{Method: http.MethodPost, Path: Path + "/session", Scope: access.Audit, Answer: k.signIn},
		{Method: http.MethodDelete, Path: Path + "/session", Scope: rest.Public, Answer: k.signOut},
	})
	return k
}

// ServeHTTP serves the pages, the session, and what the pages read.
func (k *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case path == Path:
		w.Header().Set("Location", "console/") // relative: a proxy may serve it below another path
		w.WriteHeader(http.StatusPermanentRedirect)
	case path == Path+"/session":
		k.front.ServeHTTP(w, withoutCookie(r))
	case strings.HasPrefix(path, apiPath):
		k.pass(w, r)
	default:
		http.StripPrefix(Path, k.pages).ServeHTTP(w, r)
	}
}

// apiPath is the beginning of the paths that the pages read: the part's name follows, and the part's own path.
const apiPath = Path + "/api/"

// pass passes a page's request on to a part, as a request with the session's key.
func (k *console) pass(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, apiPath), "/")
	part, known := k.Parts[name]
	if !known {
		http.NotFound(w, r)
		return
	}
	// Browsers send the header with every request, and no page can change it (Fetch Metadata).
	if r.Header.Get("Sec-Fetch-Site") != "same-origin" {
		refuse(w, http.StatusForbidden, "forbidden", "only the console's own pages may read here")
		return
	}
	on, signed := k.cookie(r)
	if !signed && !k.keyless() {
		refuse(w, http.StatusUnauthorized, "unauthorized", "sign in")
		return
	}
	inner := withoutCookie(r)
	for _, header := range []string{"Authorization", "X-Api-Key", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Referer"} {
		inner.Header.Del(header)
	}
	// The page's request was checked above. The part sees it as a program's.
	inner.Header.Set("Content-Type", "application/json")
	if signed {
		inner = rest.SignedIn(inner, on.key)
	}
	http.StripPrefix(apiPath+name, part).ServeHTTP(w, withRequestURI(inner, apiPath+name))
}

// withRequestURI cuts a prefix off the request's line, which routers that use encoded paths read.
func withRequestURI(r *http.Request, prefix string) *http.Request {
	own := *r
	own.RequestURI = strings.TrimPrefix(r.RequestURI, prefix)
	return &own
}

// keyless reports whether the console needs no session: requests without a key are answered.
func (k *console) keyless() bool {
	a := k.API.Access
	return !a.Always && !a.Current().Closed()
}

// withoutCookie is a request that the session's cookie is taken from, so that no part and no log has it.
func withoutCookie(r *http.Request) *http.Request {
	inner := r.Clone(r.Context())
	if r.URL.Path != Path+"/session" {
		inner.Header.Del("Cookie")
	}
	return inner
}

// refuse writes a problem without the rest of an API.
func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"type":"/problems/`+code+`","title":"`+http.StatusText(status)+`","status":`+itoa(status)+`,"code":"`+code+`","detail":"`+detail+`"}`+"\n")
}
