package eventstoredb

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	hopsMost   = 3        // nodes in turn that name another as the leader
	maxMessage = 17 << 20 // bytes of one message; the server sends up to 16 MiB
)

// search makes one search for the leader: where a node said that it is, else among the
// URL's nodes.
func (s *supervisor) search() (*link, error) {
	s.mu.Lock()
	named := s.named
	s.named = ""
	s.mu.Unlock()
	if named != "" {
		if l, err := s.follow(named); err == nil {
			return l, nil
		}
	}
	var all []error
	for _, node := range s.nodes() {
		address, err := s.leaderBy(node)
		if err == nil {
			var l *link
			if l, err = s.follow(address); err == nil {
				return l, nil
			}
		}
		all = append(all, err)
		if s.alive.Err() != nil {
			break
		}
	}
	return nil, errors.Join(all...)
}

// nodes are the addresses in the URL.
func (s *supervisor) nodes() []string {
	if len(s.config.GossipSeeds) == 0 {
		return []string{s.config.Address}
	}
	all := make([]string, len(s.config.GossipSeeds))
	for i, seed := range s.config.GossipSeeds {
		all[i] = seed.String()
	}
	return all
}

// leaderBy is the leader's address by the gossip of a node. A URL of one node names that
// node itself: it may be reached by an address that its cluster does not know.
func (s *supervisor) leaderBy(node string) (string, error) {
	if !s.config.DnsDiscover && len(s.config.GossipSeeds) == 0 {
		return node, nil
	}
	conn, err := s.dial(node)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing is lost
	ctx, cancel := context.WithTimeout(s.alive, min(time.Duration(s.config.GossipTimeout)*time.Second, s.limit))
	defer cancel()
	info, err := gossip.NewGossipClient(conn).Read(ctx, &shared.Empty{})
	if err != nil {
		return "", fmt.Errorf("gossip of %s: %w", node, err)
	}
	for _, m := range info.GetMembers() {
		if m.GetIsAlive() && m.GetState() == gossip.MemberInfo_Leader {
			at := m.GetHttpEndPoint()
			return net.JoinHostPort(at.GetAddress(), strconv.FormatUint(uint64(at.GetPort()), 10)), nil
		}
	}
	return "", fmt.Errorf("gossip of %s: no member leads", node)
}

// follow connects to a node, or to the node that it names as the leader, and so on.
func (s *supervisor) follow(address string) (*link, error) {
	from := ""
	for hops := 0; ; hops++ {
		l, err := s.connect(address)
		if err == nil {
			return l, nil
		}
		elsewhere := new(notLeaderError)
		if errors.As(err, &elsewhere) && hops < hopsMost {
			from, address = address, elsewhere.leader
			continue
		}
		if from != "" {
			return nil, fmt.Errorf("%s names %s as the leader, but it cannot be reached as the leader: %w", from, address, err)
		}
		return nil, err
	}
}

// connect connects to a node that serves a read as the leader.
func (s *supervisor) connect(address string) (*link, error) {
	conn, err := s.dial(address)
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, streams: streams.NewStreamsClient(conn)}
	ctx, cancel := context.WithTimeout(s.alive, min(s.limit, s.patience))
	defer cancel()
	if _, err := readPage(leading(ctx), l.streams, signOfLife()); err != nil {
		conn.Close() //nolint:errcheck,gosec // the first error is told
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	l.gone, l.retired = context.WithCancel(context.Background())
	return l, nil
}

// dial prepares a connection with the URL's settings.
func (s *supervisor) dial(address string) (*grpc.ClientConn, error) {
	c := s.config
	options := []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage))}
	if c.DisableTLS {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	} else {
		secured := &tls.Config{InsecureSkipVerify: c.SkipCertificateVerification, RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12} //nolint:gosec // the URL says so
		if c.UserCertFile != "" && c.UserKeyFile != "" {
			certificate, err := tls.LoadX509KeyPair(c.UserCertFile, c.UserKeyFile)
			if err != nil {
				return nil, fmt.Errorf("user certificate: %w", err)
			}
			secured.Certificates = []tls.Certificate{certificate}
		}
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(secured)))
		if c.Username != "" {
			options = append(options, grpc.WithPerRPCCredentials(password{c.Username, c.Password}))
		}
	}
	if c.KeepAliveInterval >= 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: c.KeepAliveInterval, Timeout: c.KeepAliveTimeout, PermitWithoutStream: true,
		}))
	}
	return grpc.NewClient(address, options...)
}

// password is sent with each call, over TLS alone.
type password struct{ user, secret string }

// GetRequestMetadata returns the header of basic authentication.
func (p password) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(p.user+":"+p.secret))}, nil
}

// RequireTransportSecurity is true.
func (p password) RequireTransportSecurity() bool { return true }

var _ credentials.PerRPCCredentials = password{}
