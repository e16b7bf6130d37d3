package postgres

import (
	"context"
	"net"
	"time"
)

// peerTimeout is after how long without a sign of the other side a connection is
// given up. Without it the kernel retransmits to a vanished server for minutes.
const peerTimeout = 3 * time.Second

// dial is net.Dial with an eye on peers that vanish without a word: bytes that are
// not acknowledged, and silence while we wait for an answer.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		Control: setUserTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: peerTimeout, Interval: time.Second, Count: 3,
		},
	}
	return d.DialContext(ctx, network, address)
}
