package webhook

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// A notice queued under a sealed URL reaches the client's URL, signed with secrets of this
// endpoint only.
func TestCall(t *testing.T) {
	type got struct {
		*http.Request
		body []byte
	}
	requests := make(chan got, 2)
	s := newSink(t, "127.0.0.1:0", sinkName, nil, func(_ *sink, conn net.Conn) {
		for {
			r, body, err := read(conn)
			if err != nil {
				return
			}
			requests <- got{r, body}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	seal, err := notice.NewSealer(bytes.Repeat([]byte{1}, notice.SealKeyBytes))
	must(t, err)
	sender := newSender(t, loopbackOnly(s.port), s.roots)
	now := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	sender.now = func() time.Time { return now }
	c := Caller{Sender: sender, Seal: seal, Seeds: []Secret{newSecret(t), newSecret(t)}}
	url := endpoint(t, s).URL
	id := c.Endpoint("payroll", url)
	n := notice.Sending{URL: seal.Seal(url)}
	n.Key, n.Body = notice.Key{Endpoint: id, Intent: chain.IntentID{7}, Seq: 3}, []byte(`{"a":1}`)
	if id != notice.EndpointOf("payroll", n.URL) {
		t.Error("the endpoint has two names")
	}
	if o := c.Call(t.Context(), n); o.Class != notice.Delivered {
		t.Fatalf("%+v", o)
	}
	r := <-requests
	if r.RequestURI != "/hook?key=1" || string(r.body) != `{"a":1}` || r.Header.Get(HeaderSignature) != Sign(c.Secrets(id), n.MessageID(), now, n.Body) {
		t.Errorf("%s %s %v", r.RequestURI, r.body, r.Header)
	}
	if o := c.Try(t.Context(), id, url, "msg_try_1", now); o.Class != notice.Delivered {
		t.Fatalf("%+v", o)
	}
	if r := <-requests; r.Header.Get(HeaderID) != "msg_try_1" || !strings.Contains(string(r.body), PingType) || r.Header.Get(HeaderSignature) != Sign(c.Secrets(id), "msg_try_1", now, r.body) {
		t.Errorf("%s %v", r.body, r.Header)
	}
	n.URL = n.URL[:len(n.URL)-2] + "AA"
	if o := c.Call(t.Context(), n); o.Cause != notice.Unfit {
		t.Errorf("a URL that cannot be opened: %+v", o)
	}
}

// Each endpoint has its own secret, always the same.
func TestFor(t *testing.T) {
	seed, err := ParseSecret("whsec_" + strings.Repeat("A", 43) + "=")
	must(t, err)
	a, b := seed.For(notice.EndpointID{1}).Reveal(), seed.For(notice.EndpointID{2}).Reveal()
	if a == b || a == seed.Reveal() || a != seed.For(notice.EndpointID{1}).Reveal() || newSecret(t).For(notice.EndpointID{1}).Reveal() == a {
		t.Errorf("%s, %s", a, b)
	}
	if _, err := ParseSecret(a); err != nil {
		t.Error(err)
	}
}

func TestParseSecrets(t *testing.T) {
	one, two := newSecret(t).Reveal(), newSecret(t).Reveal()
	all, err := ParseSecrets("\n" + one + "\r\n" + two + "\n\n")
	must(t, err)
	var got []string
	for _, s := range all {
		got = append(got, s.Reveal())
	}
	if d := cmp.Diff([]string{one, two}, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "\n", "whsec_short", strings.Repeat(one+"\n", SecretsMax+1), one + " " + two} {
		if _, err := ParseSecrets(bad); err == nil || strings.Contains(err.Error(), one) {
			t.Errorf("%d bytes are taken, or shown: %v", len(bad), err)
		}
	}
}
