package app

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// triesAll is a web page that tries every request possible for a page, and reports the answers
// it could read.
//
//go:embed testdata/page.html
var triesAll string

type sending struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body"`
}

// target is a listener, with the requests that a page sends to it.
type target struct {
	Base  string    `json:"base"` // empty: the page's own origin
	Gets  []string  `json:"gets"`
	Sends []sending `json:"sends"`
}

type plan struct {
	To     []target `json:"to"`
	Frames []string `json:"frames"`
}

// site is a web site that serves one page and passes all other requests on to another server
// under the site's own name. This is how a browser sees DNS rebinding.
type site struct {
	*httptest.Server
	read chan []string

	mu    sync.Mutex
	page  plan
	leads *url.URL // the listener; nil: none
}

// has sets the page's plan, and the listener for the site's other requests, if any.
func (s *site) has(to []target, leads *url.URL) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page, s.leads = plan{To: to, Frames: []string{}}, leads
}

// frames adds frames to the page.
func (s *site) frames(urls []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page.Frames = append(s.page.Frames, urls...)
}

func (s *site) shows() (plan, *url.URL) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.page, s.leads
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{read: make(chan []string, 1)}
	rebound := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableKeepAlives: true}, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			_, leads := s.shows()
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = leads.Scheme, leads.Host, r.In.Host
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}, // the page is gone
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, leads := s.shows()
		switch {
		case r.URL.Path == "/page":
			text, err := json.Marshal(page)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, strings.Replace(triesAll, "PLAN", string(text), 1))
		case r.URL.Path == "/page-has-read":
			var read []string
			if err := json.NewDecoder(r.Body).Decode(&read); err != nil {
				t.Error(err)
			}
			s.read <- read
		case leads == nil:
			http.NotFound(w, r)
		default:
			rebound.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// rebound points the site to a listener; the page then requests it as its own origin.
func (s *site) rebound(t *testing.T, to target) {
	t.Helper()
	leads, err := url.Parse(to.Base)
	must(t, err)
	to.Base = ""
	s.has([]target{to}, leads)
}

// colonPort is a URL's port, with the colon.
func colonPort(of string) string { return of[strings.LastIndex(of, ":"):] }

// name is the site's name in a domain. Each site needs its own name, since a name resolves to
// the same address for all ports.
func (s *site) name(domain string) string { return "site" + colonPort(s.URL)[1:] + "." + domain }

// browse opens a page of a site under its name in a domain. The page's frames show the sites
// that point to listeners, at the listeners' own ports. It returns the answers that scripts
// could read.
func browse(t *testing.T, domain string, main *site, rebound []*site) (read []string) {
	t.Helper()
	all := append(slices.Clone(rebound), main)
	var rules, frames []string
	for _, s := range all {
		rules = append(rules, fmt.Sprintf("MAP %s 127.0.0.1%s", s.name(domain), colonPort(s.URL)))
		if _, leads := s.shows(); leads != nil {
			frames = append(frames, "http://"+s.name(domain)+":"+leads.Port()+"/page")
		}
	}
	main.frames(frames)
	stop := testenv.Browse(t, "http://"+main.name(domain)+colonPort(main.URL)+"/page", rules...)
	defer stop()
	within := time.After(3 * time.Minute)
	for _, s := range all {
		select {
		case some := <-s.read:
			read = append(read, some...)
		case <-within:
			t.Fatal("a page has not told what it has read")
		}
	}
	return read
}

// A page in a browser on this machine, of another origin or of a rebound name, reaches no
// listener of any program: it changes nothing and reads nothing. The same page succeeds if its
// origin, or the name, is allowed.
func TestPages(t *testing.T) {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	stranger, friend := newSite(t), newSite(t)
	gates, names := make([]*site, listeners), []string{}
	for i := range gates {
		gates[i] = newSite(t)
		names = append(names, gates[i].name("house.example"))
	}
	w := serveAll(t, "--api-hosts="+strings.Join(names, ","), "--api-origins=http://"+friend.name("house.example")+colonPort(friend.URL))
	id := w.intent(t, "victim")
	var other []target
	for i, one := range w.targets(id) {
		byName := one
		byName.Base = "http://localhost" + colonPort(one.Base)
		other = append(other, one, byName)
		gates[i].rebound(t, one)
	}
	stranger.has(other, nil)
	began := w.log.length()
	read := slices.DeleteFunc(browse(t, "evil.example", stranger, gates), func(answer string) bool {
		return strings.HasSuffix(answer, " 403") || strings.HasSuffix(answer, " 415")
	})
	if len(read) > 0 {
		t.Errorf("pages have read %d answers:\n%s", len(read), strings.Join(read, "\n"))
	}
	answered, refused := w.log.requests(began)
	if len(answered) > 0 {
		t.Errorf("pages were answered %d times:\n%s", len(answered), strings.Join(answered, "\n"))
	}
	if t.Logf("pages were refused %d times", refused); refused < 500 {
		t.Errorf("pages were refused %d times only: have they tried?", refused)
	}
	w.unchanged(t, id)

	allowed := w.allowed(id)
	for i, one := range allowed {
		gates[i].rebound(t, one)
	}
	friend.has(allowed[:1], nil)
	read = browse(t, "house.example", friend, gates[:len(allowed)])
	for i, one := range allowed {
		for _, want := range one.expected() {
			if !slices.Contains(read, want) {
				t.Errorf("at a name that is allowed, listener %d was not reached by %s", i, want)
			}
			if want = strings.Replace(want, " ", " "+one.Base, 1); i == 0 && !slices.Contains(read, want) {
				t.Errorf("from an origin that is allowed, listener %d was not reached by %s", i, want)
			}
		}
	}
	if t.Failed() {
		t.Logf("read: %s", strings.Join(read, "\n"))
	}
}

// expected are the answers that an allowed page reads.
func (o target) expected() (all []string) {
	for _, path := range o.Gets {
		all = append(all, "GET "+path+" 200")
	}
	for _, s := range o.Sends {
		all = append(all, s.Method+" "+s.Path+" 202")
	}
	return all
}
