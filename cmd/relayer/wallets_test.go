package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// libraries are the libraries of the applications in testdata/wallets, all at their defaults.
var libraries = []string{"eip1193", "viem", "ethers", "web3"}

// application is a running application, which pays from an account of its node.
type application struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	errs  *bytes.Buffer
	wait  func() error
}

// said is a line that an application prints.
type said struct {
	Accounts     []chain.Address
	Mark         string
	Hash         *chain.Hash
	Failed, Why  string
	Capabilities json.RawMessage
	Receipt      *struct {
		Hash   chain.Hash
		OK     bool
		ID     string
		Status string
	}
}

// mark is the n-th payment's own 32 bytes.
func mark(n int) string { return fmt.Sprintf("0x%064x", 0xbeef0000+n) }

// launch starts an application of testdata/wallets with the URL of its node.
func (w *world) launch(t *testing.T, library, url string, env []string, args ...string) *application {
	t.Helper()
	cmd := exec.CommandContext(w.ctx, "node", append([]string{filepath.Join("testdata", "wallets", "pay.mjs"), library, url, w.name}, args...)...)
	cmd.Env = append(os.Environ(), testenv.ViemVar+"="+testenv.Need(t, testenv.ViemVar), testenv.WalletsVar+"="+testenv.Need(t, testenv.WalletsVar))
	cmd.Env = append(cmd.Env, env...)
	a := &application{cmd: cmd, errs: new(bytes.Buffer)}
	cmd.Stderr = a.errs
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	a.lines = bufio.NewScanner(out)
	a.lines.Buffer(nil, 1<<20)
	a.wait = func() error {
		_, _ = io.Copy(io.Discard, out) // it may not end before its lines are read
		return cmd.Wait()
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = a.wait()
		}
	})
	return a
}

// next returns the next line for which want is true.
func (a *application) next(t *testing.T, what string, want func(said) bool) said {
	t.Helper()
	for a.lines.Scan() {
		if !bytes.HasPrefix(a.lines.Bytes(), []byte("{")) { // a library's own word about lost answers
			continue
		}
		var line said
		if err := json.Unmarshal(a.lines.Bytes(), &line); err != nil {
			t.Fatalf("the application printed %q: %v", a.lines.Text(), err)
		}
		if want(line) {
			return line
		}
		if line.Failed != "" {
			t.Logf("a call failed: %s", a.lines.Text())
		}
	}
	t.Fatalf("the application ended before %s: %v\n%s", what, a.wait(), a.errs)
	return said{}
}

func (a *application) hash(t *testing.T) chain.Hash {
	t.Helper()
	return *a.next(t, "a hash", func(s said) bool { return s.Hash != nil }).Hash
}

func (a *application) receipt(t *testing.T) said {
	t.Helper()
	return a.next(t, "a receipt", func(s said) bool { return s.Receipt != nil })
}

// accepted makes all intents in the log the ones that the judge expects, waits for their ends, and stops
// the relayer.
func (w *world) accepted(t *testing.T, s *rig.Service) {
	t.Helper()
	for id, state := range statesOf(t, w.events(t)) {
		w.asked[id] = state.Requested.Request
	}
	w.done(t, s)
	check(t, s.Stop(w.ctx))
}

// rpc is the URL of the relay as the node of the world's chain.
func (w *world) rpc(c client) string { return fmt.Sprintf("%s/rpc/%d", c.url, w.id) }

// held names the intent that has an attempt with a hash.
func (w *world) held(t *testing.T, c client, hash chain.Hash) (id chain.IntentID) {
	t.Helper()
	w.becomes(t, "the intent of "+hash.String(), func() bool {
		found := c.found(t, "hash="+hash.String())
		if len(found) == 1 {
			id = found[0]
		}
		return len(found) == 1
	})
	return id
}

// Applications on viem, ethers, web3.js and a provider of ten lines work with a node that holds their
// account, and with the relay, without a changed line but the URL: they send, wait, and get the
// receipt, also if the transaction was replaced meanwhile.
func TestWalletsUseTheRelay(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k, inFiles, "--lane-stall=1h") // only a command replaces a transaction
			s := w.relayer(t)
			check(t, s.Start(w.ctx))
			c := w.client(t, s)
			from := wallet.Dev(0).Address()
			for n, library := range libraries {
				a := w.launch(t, library, w.node.URL(), nil, wallet.Dev(5).Address().String(), "send", mark(1000+n))
				hash, got := a.hash(t), a.receipt(t).Receipt
				if got.Hash != hash || !got.OK {
					t.Errorf("%s with a node: %+v", library, got)
				}
				w.strangers[hash], w.beside = true, w.beside+1
				check(t, a.wait())
			}
			for n, library := range libraries {
				a := w.launch(t, library, w.rpc(c), nil, from.String(), "send", mark(2*n))
				accounts := a.next(t, "accounts", func(s said) bool { return s.Accounts != nil }).Accounts
				if len(accounts) != len(keys) || accounts[0] != from {
					t.Errorf("%s: the accounts are %s", library, accounts)
				}
				if hash, got := a.hash(t), a.receipt(t).Receipt; got.Hash != hash || !got.OK {
					t.Errorf("%s: %+v for %s", library, got, hash)
				}
				check(t, a.wait())
				w.replacedBelow(t, c, w.launch(t, library, w.rpc(c), nil, from.String(), "dear", mark(2*n+1)))
			}
			w.accepted(t, s)
			if len(w.asked) != 2*len(libraries) {
				t.Errorf("%d intents for %d payments", len(w.asked), 2*len(libraries))
			}
			w.judge(t)
		})
	}
}

// viem's sendCalls, waitForCallsStatus and getCapabilities work by EIP-5792 on both kinds of chain.
func TestCallsOfWallets(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k, inFiles)
			s := w.relayer(t)
			check(t, s.Start(w.ctx))
			c := w.client(t, s)
			from := wallet.Dev(0).Address().String()
			a := w.launch(t, "viem", w.rpc(c), nil, from, "calls", mark(0))
			got := a.receipt(t).Receipt
			if got.ID == "" || got.Status != "success" || !got.OK {
				t.Errorf("the status is %+v", got)
			}
			check(t, a.wait())
			id := w.held(t, c, got.Hash)
			if found := c.found(t, "key="+got.ID); len(found) != 1 || found[0] != id {
				t.Errorf("%s sent %s, and the id is of %s", id, got.Hash, found)
			}
			a = w.launch(t, "viem", w.rpc(c), nil, from, "capabilities")
			want := map[string]string{"tempo": `{"atomic":{"status":"supported"}}`, "ethereum": `{"atomic":{"status":"unsupported"}}`}[w.name]
			if got := a.next(t, "capabilities", func(s said) bool { return s.Capabilities != nil }).Capabilities; string(got) != want {
				t.Errorf("the capabilities are %s, want %s", got, want)
			}
			check(t, a.wait())
			w.accepted(t, s)
			w.judge(t)
		})
	}
}

// replacedBelow has the transaction of an application replaced while the chain makes no blocks. The receipt
// that the application waits for is the replacement's.
func (w *world) replacedBelow(t *testing.T, c client, a *application) {
	t.Helper()
	check(t, rig.Call(w.ctx, w.node.URL(), nil, "evm_setIntervalMining", 0))
	first := a.hash(t)
	w.replacing(t, c, first, func(second chain.Hash) {
		if got := a.receipt(t).Receipt; got.Hash != second || !got.OK {
			t.Errorf("the receipt is %+v; %s was replaced by %s", got, first, second)
		}
		check(t, a.wait())
	})
}

// replacing has a transaction replaced while the chain makes no blocks, and calls then when blocks go on.
// The relay shows the replacement under both hashes.
func (w *world) replacing(t *testing.T, c client, first chain.Hash, then func(second chain.Hash)) {
	t.Helper()
	const fee = "200000000000" // below ten elevenths of what the payments allow
	id := w.held(t, c, first)
	path := "/v1/intents/" + id.String()
	c.must(t, http.StatusAccepted, http.MethodPost, path+"/speed-up", map[string]string{"feePerGas": fee})
	var second chain.Hash
	w.becomes(t, "the node has the replacement", func() bool {
		got := c.must(t, http.StatusOK, http.MethodGet, path, nil)
		if len(got.Attempts) < 2 {
			return false
		}
		second = got.Attempts[1].TxHash
		var known *struct{ Hash chain.Hash }
		check(t, rig.Call(w.ctx, w.node.URL(), &known, "eth_getTransactionByHash", second.String()))
		return known != nil
	})
	check(t, rig.Call(w.ctx, w.node.URL(), nil, "evm_setIntervalMining", 1))
	then(second)
	for _, hash := range []chain.Hash{first, second} {
		var mined struct{ Hash chain.Hash }
		check(t, rig.Call(w.ctx, w.rpc(c), &mined, "eth_getTransactionByHash", hash.String()))
		if mined.Hash != second {
			t.Errorf("%s is shown as %s, want %s", hash, mined.Hash, second)
		}
	}
}

// cast runs Foundry's cast and returns what it prints.
func (w *world) cast(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(w.ctx, testenv.Need(t, testenv.CastVar), args...)
	cmd.Dir = t.TempDir() // without anybody's configuration
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("cast %s: %w: %s", strings.Join(args, " "), err, &errs)
	}
	return strings.TrimSpace(string(out)), err
}

// cast send --unlocked works with the relay as with a node: it sends, waits, and prints the receipt.
func TestCastUsesTheRelay(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k, inFiles, "--lane-stall=1h")
			s := w.relayer(t)
			check(t, s.Start(w.ctx))
			c := w.client(t, s)
			send := func(url, from string, n int, more ...string) (string, error) {
				args := append([]string{"send", "--unlocked", "--from", from, "--rpc-url", url}, more...)
				if w.name == "tempo" { // else cast reads no receipt of a transaction of Tempo's type
					args = append(args, "--tempo.nonce-key", "0")
					return w.cast(t, append(args, wallet.PathUSD.String(), "transferWithMemo(address,uint256,bytes32)", to.String(), "1", mark(n))...)
				}
				return w.cast(t, append(args, to.String(), mark(n), "--value", "1")...)
			}
			type receipt struct {
				TransactionHash chain.Hash
				Status          string
			}
			for n, door := range []struct{ url, from string }{{w.node.URL(), wallet.Dev(5).Address().String()}, {w.rpc(c), wallet.Dev(0).Address().String()}} {
				out, err := send(door.url, door.from, n, "--json")
				check(t, err)
				var got receipt
				check(t, json.Unmarshal([]byte(out), &got))
				if got.Status != "0x1" {
					t.Errorf("%s: %s", door.url, out)
				}
				if n == 0 {
					w.strangers[got.TransactionHash], w.beside = true, w.beside+1
				}
			}
			check(t, rig.Call(w.ctx, w.node.URL(), nil, "evm_setIntervalMining", 0))
			text, err := send(w.rpc(c), wallet.Dev(0).Address().String(), 2, "--async", "--gas-price", "400gwei")
			check(t, err)
			first, err := chain.ParseHash(text)
			check(t, err)
			a := w.castReceipt(t, w.rpc(c), first)
			w.replacing(t, c, first, func(second chain.Hash) {
				var got receipt
				out, err := a()
				check(t, err)
				check(t, json.Unmarshal([]byte(out), &got))
				if got.TransactionHash != second || got.Status != "0x1" {
					t.Errorf("%s was replaced by %s: %s", first, second, out)
				}
			})
			w.accepted(t, s)
			w.judge(t)
		})
	}
}

// castReceipt starts cast receipt, which waits for the receipt of a hash.
func (w *world) castReceipt(t *testing.T, url string, hash chain.Hash) (wait func() (string, error)) {
	t.Helper()
	var out string
	done := make(chan error, 1)
	go func() {
		var err error
		out, err = w.cast(t, "receipt", hash.String(), "--rpc-url", url, "--json")
		done <- err
	}()
	return func() (string, error) { err := <-done; return out, err }
}
