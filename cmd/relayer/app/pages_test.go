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
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
)

// triesAll is a page that tries everything that a page can, and tells what it has read.
//
//go:embed testdata/page.html
var triesAll string

type sending struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body"`
}

// target is what a page asks of one listener.
type target struct {
	Base  string    `json:"base"` // empty: of the page's own origin
	Gets  []string  `json:"gets"`
	Sends []sending `json:"sends"`
}

type plan struct {
	To     []target `json:"to"`
	Frames []string `json:"frames"`
}

// site is a web site that serves one page, and for the rest is another server, asked by
// the name that the site was asked by: this is what a browser meets when a name is
// rebound.
type site struct {
	*httptest.Server
	page  plan
	read  chan []string
	leads *url.URL // to the listener; nil: nowhere
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{read: make(chan []string, 1)}
	rebound := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableKeepAlives: true}, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = s.leads.Scheme, s.leads.Host, r.In.Host
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}, // the page has gone
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/page":
			text, err := json.Marshal(s.page)
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
		case s.leads == nil:
			http.NotFound(w, r)
		default:
			rebound.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// port is a URL's, with the colon.
func port(of string) string { return of[strings.LastIndex(of, ":"):] }

// name is the site's below a domain: each has a name of its own, as what a name leads to
// is the same for all ports.
func (s *site) name(domain string) string { return "site" + port(s.URL)[1:] + "." + domain }

// browse shows a page of a site at its name in a domain, and in the page's frames those of
// the sites that lead to listeners, at the listeners' own ports. It returns the answers
// that scripts have read.
func browse(t *testing.T, domain string, main *site, rebound []*site) (read []string) {
	t.Helper()
	all := append(slices.Clone(rebound), main)
	var rules []string
	for _, s := range all {
		rules = append(rules, fmt.Sprintf("MAP %s 127.0.0.1%s", s.name(domain), port(s.URL)))
		s.page.Frames = []string{}
	}
	for _, s := range rebound {
		main.page.Frames = append(main.page.Frames, "http://"+s.name(domain)+":"+s.leads.Port()+"/page")
	}
	stop := testenv.Browse(t, "http://"+main.name(domain)+port(main.URL)+"/page", rules...)
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

// A page in a browser on this machine, of another origin or of a name that was rebound,
// reaches no listener of any program: nothing changes, and nothing is read. The same page
// does where its origin, or the name, is allowed.
func TestPages(t *testing.T) {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	stranger, friend := newSite(t), newSite(t)
	gates, names := make([]*site, listeners), []string{}
	for i := range gates {
		gates[i] = newSite(t)
		names = append(names, gates[i].name("house.example"))
	}
	w := serveAll(t, "--api-hosts="+strings.Join(names, ","), "--api-origins=http://"+friend.name("house.example")+port(friend.URL))
	id := w.intent(t, "victim")
	for i, one := range w.targets(id) {
		var err error
		gates[i].leads, err = url.Parse(one.Base)
		must(t, err)
		byName := one
		byName.Base = "http://localhost" + port(one.Base)
		stranger.page.To = append(stranger.page.To, one, byName)
		one.Base = ""
		gates[i].page.To = []target{one}
	}
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
		one.Base = ""
		gates[i].page.To = []target{one}
	}
	friend.page.To = []target{allowed[0]}
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

// expected are the answers that a page reads that may ask.
func (o target) expected() (all []string) {
	for _, path := range o.Gets {
		all = append(all, "GET "+path+" 200")
	}
	for _, s := range o.Sends {
		all = append(all, s.Method+" "+s.Path+" 202")
	}
	return all
}
