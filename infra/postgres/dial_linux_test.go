package postgres

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUserTimeout reads the option of the socket that dial made.
func TestUserTimeout(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		listener, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() //nolint:errcheck // the test is over
		conn, err := dial(context.Background(), network, listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the test is over
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			continue
		}
		raw, err := tcp.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var timeout int
		if cerr := raw.Control(func(fd uintptr) {
			timeout, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		}); cerr != nil || err != nil {
			t.Fatal(cerr, err)
		}
		if timeout != int(peerTimeout.Milliseconds()) {
			t.Errorf("the socket gives up after %d ms", timeout)
		}
	}
}
