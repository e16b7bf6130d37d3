package postgres

import (
	"context"
	"net"
	"time"
)

// peerTimeout is how long the peer may be silent before the connection is closed. Without it
// the kernel retransmits to a vanished server for minutes.
const peerTimeout = 3 * time.Second

// dial is net.Dial that detects a vanished peer, by unacknowledged bytes and by silence while
// we wait for an answer.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		Control: setUserTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: peerTimeout, Interval: time.Second, Count: 3,
		},
	}
	return d.DialContext(ctx, network, address)
}
