package rpc

import (
	"context"
	"net/http"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

func TestSendEndsWithItsContext(t *testing.T) {
	g := &gateway{node: newChain(t, chaintest.Rules{}).Node("a")}
	p := open(t, nil, serve(t, g))
	entered := make(chan struct{})
	g.misbehave(send, func(_ http.ResponseWriter, r *http.Request, _ []byte) {
		close(entered)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	raw, hash := plain(alice, key5, 0)
	if got := p.Send(ctx, raw, hash, 0, tx.Sending{})[0]; got.Class != tx.Unknown {
		t.Errorf("answer %+v", got)
	}
	if got := p.Status()[0]; got.Failures != 0 {
		t.Errorf("our giving up counted against the endpoint: %+v", got)
	}
}
