package webhook

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// names is a DNS server that returns one IPv4 address for all names, and after each lookup the
// next in a list.
type names struct {
	address string
	mu      sync.Mutex
	answers []netip.Addr
	lookups int
}

func newNames(t *testing.T, answers ...string) *names {
	t.Helper()
	n := &names{}
	for _, a := range answers {
		n.answers = append(n.answers, netip.MustParseAddr(a))
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	n.address = conn.LocalAddr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		packet := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(n.answer(packet[:size]), from)
		}
	})
	t.Cleanup(func() { conn.Close(); serving.Wait() })
	return n
}

// answer answers a question for A with an address, and any other with an empty answer. The
// format is defined in RFC 1035 section 4.
func (n *names) answer(question []byte) []byte {
	const header, classIN, typeA = 12, 1, 1
	end := header
	for question[end] != 0 { // labels of the name
		end += int(question[end]) + 1
	}
	end += 5 // root label, type and class
	reply := append([]byte{}, question[:end]...)
	binary.BigEndian.PutUint16(reply[2:], 0x8180) // an answer, recursion available
	binary.BigEndian.PutUint16(reply[6:], 0)
	binary.BigEndian.PutUint32(reply[8:], 0)
	if binary.BigEndian.Uint16(question[end-4:]) != typeA {
		return reply
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.answers[(n.lookups-1)%len(n.answers)].As4()
	binary.BigEndian.PutUint16(reply[6:], 1)
	reply = append(reply, 0xc0, header, 0, typeA, 0, classIN, 0, 0, 0, 0, 0, 4)
	return append(reply, a[:]...)
}

// lookup queries this server.
func (n *names) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	n.lookups++
	n.mu.Unlock()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", n.address)
	}}
	return r.LookupNetIP(ctx, "ip", name)
}

// A name has one address when it is checked and another when it is called. 127.0.0.1 stands for
// a public address here, 127.0.0.2 for an inside one.
func TestRebinding(t *testing.T) {
	const outside, within = "127.0.0.1", "127.0.0.2"
	good := newSink(t, outside+":0", sinkName, nil, answers("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"))
	bad := newSink(t, fmt.Sprintf("%s:%d", within, good.port), sinkName, nil, answers("HTTP/1.1 200 OK\r\n\r\n"))
	server := newNames(t, outside, within)
	rules := loopbackOnly(good.port)
	rules.Lookup = server.lookup
	sender, e := newSender(t, rules, good.roots), endpoint(t, good)

	must(t, sender.guard.CheckNow(t.Context(), e.URL)) // the check at registration
	want := notice.Outcome{Class: notice.Failed, Cause: notice.Forbidden}
	if got := sender.Send(t.Context(), e, Ping("a", time.Now())); got != want {
		t.Errorf("to the inside: %+v", got)
	}
	// The name has the public address again, and is looked up once per attempt: a second lookup
	// would have returned the inside address.
	if got := sender.Send(t.Context(), e, Ping("a", time.Now())); got.Class != notice.Delivered {
		t.Errorf("to the outside: %+v", got)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.lookups != 3 || good.calls.Load() != 1 || bad.calls.Load() != 0 {
		t.Errorf("%d lookups, %d connections to the outside, %d to the inside", server.lookups, good.calls.Load(), bad.calls.Load())
	}
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := uint16(listener.Addr().(*net.TCPAddr).Port)
	must(t, listener.Close()) // no server listens there now
	rules := loopbackOnly(port)
	ended := make(chan struct{})
	defer close(ended)
	for what, c := range map[string]struct {
		lookup func(context.Context, string) ([]netip.Addr, error)
		cause  notice.Cause
	}{
		"nobody listens": {at("127.0.0.1"), notice.Connect},
		"no address":     {at(), notice.Name},
		"an error": {func(context.Context, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
		}, notice.Name},
		"no resolver answers": {func(context.Context, string) ([]netip.Addr, error) {
			<-ended
			return nil, errors.New("ended")
		}, notice.Timeout},
	} {
		rules.Lookup = c.lookup
		e := Endpoint{URL: fmt.Sprintf("https://%s:%d/", sinkName, port), Secrets: []Secret{newSecret(t)}}
		want := notice.Outcome{Class: notice.Failed, Cause: c.cause}
		timeout := 30 * time.Second
		if c.cause == notice.Timeout {
			timeout = TimeoutMin
		}
		if got := newSenderWithin(t, timeout, rules, nil).Send(t.Context(), e, Ping("a", time.Now())); got != want {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// If one of several addresses does not answer, another is tried.
func TestNextAddress(t *testing.T) {
	s := newSink(t, "127.0.0.1:0", sinkName, nil, answers("HTTP/1.1 200 OK\r\n\r\n"))
	rules := loopbackOnly(s.port)
	rules.Networks = append(rules.Networks, netip.MustParsePrefix("127.0.0.3/32"))
	rules.Lookup = at("127.0.0.3", "127.0.0.1")
	if o := newSender(t, rules, s.roots).Send(t.Context(), endpoint(t, s), Ping("a", time.Now())); o.Class != notice.Delivered {
		t.Errorf("%+v", o)
	}
}

func TestNew(t *testing.T) {
	for _, timeout := range []time.Duration{0, TimeoutMin - 1, TimeoutMax + 1} {
		if _, err := New(Options{Guard: guard(t, Rules{}), Timeout: timeout, Now: time.Now}); err == nil {
			t.Errorf("an attempt may take %s", timeout)
		}
	}
}
