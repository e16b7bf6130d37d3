package app_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// inName signs like an access key (Keychain V2) in the name of an account.
type inName struct {
	account chain.Address
	key     wallet.Secp256k1
}

func (k inName) Address() chain.Address { return k.account }

func (k inName) Sign(digest chain.Hash) []byte {
	const keychain = 0x04
	signature := k.key.Sign(chain.Keccak([]byte{keychain}, digest[:], k.account[:]))
	return append(append([]byte{keychain}, k.account[:]...), signature...)
}

// busyWithKeys is a node that answers questions about access keys with 429 and a long pause.
type busyWithKeys struct {
	http.Handler
	refused chan struct{} // closed after the first of them
	once    sync.Once
}

func (n *busyWithKeys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if bytes.Contains(body, []byte("0xaaaaaaaa00000000000000000000000000000000")) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
		n.once.Do(func() { close(n.refused) })
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	n.Handler.ServeHTTP(w, r)
}

// A node asks for a pause because of a claim of an access key. A payment is sent and seen mined all
// the same.
func TestClaimsPauseNoPayment(t *testing.T) {
	c := chaintest.New(chaintest.Options{Chain: rig.TempoChain, Decode: app.Decode})
	t.Cleanup(c.Close)
	n := &busyWithKeys{Handler: c.Node("a"), refused: make(chan struct{})}
	node := httptest.NewServer(n)
	t.Cleanup(node.Close)
	ctx, stop := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	var mining sync.WaitGroup
	mining.Go(func() { c.Run(ctx, time.Second) })
	t.Cleanup(mining.Wait)
	t.Cleanup(stop)
	go func() {
		ended <- app.Serve(ctx, settings(t, "--chains", fmt.Sprintf("%s=%s", rig.TempoChain, node.URL), "--grouping", "all"), app.Options{
			Log:       slog.New(slog.DiscardHandler),
			Listening: func(public, _ net.Addr) { listening <- "http://" + public.String() },
		})
	}()
	at := <-listening
	key, err := wallet.NewSecp256k1([32]byte{31: 5})
	must(t, err)
	submit(t, at, rig.Pay(inName{chain.Address{1, 2}, key}, wallet.Tempo{
		NonceKey: chain.NonceKey{31: 9}, Window: chain.Window{After: uint64(time.Now().Add(time.Hour).Unix())},
		Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, chain.Address{1}, 1)},
	}))
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	select {
	case <-n.refused:
	case <-soon.Done():
		t.Fatal("no node is asked about the key")
	}
	due, _ := rig.Payments(1, 1)
	submit(t, at, due...)
	if _, err := rig.Await(soon, at, due[0].Hash, rig.Executed); err != nil {
		t.Error(err)
	}
	stop()
	must(t, <-ended)
}
