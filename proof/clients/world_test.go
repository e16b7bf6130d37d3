package clients_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tempo-watchtower/watchtower/cmd/devnet/wallet"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/group"
	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
	"github.com/tempo-watchtower/watchtower/infra/webhook"
	"github.com/tempo-watchtower/watchtower/proof/rig"
)

// programs are the paths of both programs; TestMain finds or builds them.
var programs = map[string]string{"watchtower": "", "relayer": ""}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "clients-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
		tarball.dir = dir
		for name := range programs {
			if programs[name], err = rig.CrashProgram(context.Background(), dir, name, false); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}())
}

// tarball is the packed TypeScript client. It outlives the test that packs it.
var tarball struct {
	dir, path string
	once      sync.Once
}

// patience limits a test; it usually takes far less.
const patience = 5 * time.Minute

// relaySecret is the key of the relay's signer, an account that anvil funds.
var relaySecret = wallet.DevSecret(0)

// world is a chain, both services with a gate before each, and a receiver of webhooks.
type world struct {
	ctx    context.Context
	node   *server.Anvil
	gates  map[string]*gate // by contract: delivery, relay
	faults *faults
	hook   *hook
	values map[string]any

	mu   sync.Mutex
	done map[string]map[string]bool // operations that were carried out, by contract and id: the calls that did
	call string                     // the present call
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	node, err := server.NewAnvil(testenv.Need(t, testenv.AnvilVar), append(server.TempoFlags(), "--block-time", "1")...)
	check(t, err)
	t.Cleanup(func() { check(t, node.Remove()) })
	check(t, node.Start(ctx))
	w := &world{ctx: ctx, node: node, hook: newHook(t), gates: map[string]*gate{}, faults: &faults{}, done: map[string]map[string]bool{}}

	signer := wallet.Dev(0).Address().String()
	secret, err := webhook.NewSecret(rand.Reader)
	check(t, err)
	secrets := filepath.Join(t.TempDir(), "webhook.secrets")
	check(t, os.WriteFile(secrets, []byte(secret.Reveal()+"\n"), 0o600))
	s, key := w.serve(t, "watchtower")
	w.gate(t, "delivery", s.URL, key)
	s, key = w.serve(t, "relayer", "--relay-listen=127.0.0.1:0", "--signers-allowed="+signer, "--signers-environment", "--pools=hot="+signer,
		"--lane-poll=100ms", "--webhooks-secrets-file="+secrets, "--webhooks-development", "--webhooks-poll=50ms")
	var entry struct{ Relay string }
	if !s.Said("listening for intents", &entry) {
		t.Fatal("the relayer does not say where it listens for intents")
	}
	w.gate(t, "relay", entry.Relay, key)
	w.values = map[string]any{
		"chain": uint64(rig.TempoChain), "signer": signer, "hook": w.hook.url,
		"year": time.Now().Add(365 * 24 * time.Hour).Unix(), "expires": time.Now().Add(time.Hour).Unix(),
		"owner": wallet.Dev(4).Address().String(), "unknown": "0x" + strings.Repeat("11", 32), "noIntent": "0x" + strings.Repeat("11", 16),
	}
	return w
}

// serve starts a program with its own files and an API key.
func (w *world) serve(t *testing.T, name string, more ...string) (s *rig.Service, key string) {
	t.Helper()
	dir := t.TempDir()
	store := []string{"--store", "embedded:" + filepath.Join(dir, "data")}
	create := append([]string{"keys", "create", "--name", "test", "--client", "shop", "--scope", "submit,read,cancel,rpc,audit"}, store...)
	made, err := rig.Run(w.ctx, nil, nil, programs[name], create...)
	check(t, err)
	_, key, found := strings.Cut(made.Stdout, "wt_")
	if !found {
		t.Fatal(made.Says())
	}
	key = "wt_" + strings.Fields(key)[0]
	s = &rig.Service{Program: programs[name], Log: filepath.Join(dir, "log"), Env: []string{"RELAYER_PRIVATE_KEY_0=" + relaySecret}}
	s.Args = append(append(store, fmt.Sprintf("--chains=%d=%s", rig.TempoChain, w.node.URL()), fmt.Sprintf("--confirmations=%d=2", rig.TempoChain)), more...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, s.Autopsy())
		}
		s.Kill()
	})
	check(t, s.Start(w.ctx))
	return s, key
}

// gate opens a gate before a service that has a contract.
func (w *world) gate(t *testing.T, contract, url, key string) {
	t.Helper()
	g := &gate{service: url, key: key, faults: w.faults, operations: operationsOf(t, contractPath(contract)), done: func(id string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		id = contract + "." + id
		if w.done[id] == nil {
			w.done[id] = map[string]bool{}
		}
		w.done[id][w.call] = true
	}}
	g.open(t)
	w.gates[contract] = g
}

// contractPath is the file of a contract.
func contractPath(name string) string {
	if name == "delivery" {
		name = ""
	}
	return filepath.Join("..", "..", "api", name, "openapi.yaml")
}

// operationsOf reads the operations of a contract.
func operationsOf(t *testing.T, path string) (all []operation) {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	var doc struct {
		Paths map[string]map[string]struct {
			ID string `yaml:"operationId"`
		}
	}
	check(t, yaml.Unmarshal(text, &doc))
	for path, methods := range doc.Paths {
		for method, o := range methods {
			if o.ID != "" {
				all = append(all, operation{id: o.ID, method: strings.ToUpper(method), path: pathOf(path)})
			}
		}
	}
	// Paths without parameters come first: a path with a parameter would match them too.
	slices.SortFunc(all, func(a, b operation) int {
		return strings.Count(a.path.String(), "[^/]+") - strings.Count(b.path.String(), "[^/]+")
	})
	if len(all) == 0 {
		t.Fatalf("%s has no operations", path)
	}
	return all
}

// called notes the present call, which makes the operations that follow.
func (w *world) called(call string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.call = call
}

// contracts are the names of all contracts.
func contracts(t *testing.T) (names []string) {
	t.Helper()
	root := filepath.Join("..", "..", "api")
	check(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		switch folder := filepath.Dir(path); {
		case filepath.Base(path) != "openapi.yaml":
		case folder == root:
			names = append(names, "delivery")
		default:
			names = append(names, filepath.Base(folder))
		}
		return err
	}))
	return names
}

// hook receives webhooks.
type hook struct {
	url  string
	mu   sync.Mutex
	came []delivered
}

type delivered struct {
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		d := delivered{Headers: map[string]string{}, Body: string(body)}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			d.Headers[name] = r.Header.Get(name)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.came = append(h.came, d)
	}))
	t.Cleanup(s.Close)
	h.url = s.URL + "/hook"
	return h
}

// actions are the steps that the test takes itself, beside the clients.
func (w *world) actions() map[string]func(map[string]any) (any, error) {
	return map[string]func(map[string]any) (any, error){
		"sign transaction": w.signTransaction,
		"sign cancel":      w.signCancel,
		"sign group":       w.signGroup,
		"balance":          w.balance,
		"base fee":         w.baseFee,
		"delivery":         w.delivery,
	}
}

// signTransaction signs a payment of one unit by the owner.
func (w *world) signTransaction(with map[string]any) (any, error) {
	var p struct {
		To         chain.Address
		Series     byte
		Group      bool
		Nonce      uint64
		ValidAfter uint64
	}
	if err := json.Unmarshal([]byte(shown(with)), &p); err != nil {
		return nil, err
	}
	key := chain.NonceKey{30: 7, 31: p.Series}
	if p.Group {
		key = chain.NonceKey{0x4e, 0x4b, 0x47, 0x31, 0x01, 0x02, 15: p.Series, 19: 1}
	}
	paid := rig.Pay(wallet.Dev(4), wallet.Tempo{
		NonceKey: key, Nonce: p.Nonce, Window: chain.Window{After: p.ValidAfter},
		Calls: []chain.Call{wallet.Transfer(wallet.PathUSD, p.To, 1)},
	})
	return map[string]any{"raw": "0x" + hex.EncodeToString(paid.Raw), "hash": paid.Hash.String()}, nil
}

// signCancel signs the typed data of a cancel, computing the digest from its content.
func (w *world) signCancel(with map[string]any) (any, error) {
	var typed struct {
		Domain  struct{ ChainID chain.ID }
		Message struct {
			Deployment string
			Sender     chain.Address
			GroupID    chain.GroupID
			Expires    uint64
		}
	}
	if err := json.Unmarshal([]byte(shown(with["typed"])), &typed); err != nil {
		return nil, err
	}
	m := typed.Message
	id := group.ID{Chain: typed.Domain.ChainID, Sender: m.Sender, Group: m.GroupID}
	return "0x" + hex.EncodeToString(wallet.Dev(4).Sign(group.Wish{ID: id, Deployment: m.Deployment, Expires: m.Expires}.Digest())), nil
}

// signGroup signs a group's id, the older form of a cancel.
func (w *world) signGroup(with map[string]any) (any, error) {
	id, err := hex.DecodeString(strings.TrimPrefix(fmt.Sprint(with["groupId"]), "0x"))
	return "0x" + hex.EncodeToString(wallet.Dev(4).Sign(chain.Keccak(id))), err
}

// balance is how many units an account has received.
func (w *world) balance(with map[string]any) (any, error) {
	account, err := chain.ParseAddress(fmt.Sprint(with["of"]))
	if err != nil {
		return nil, err
	}
	return rig.Balance(w.ctx, w.node.URL(), wallet.PathUSD, account)
}

// baseFee makes gas dear: from the next block on the price falls by an eighth with each block.
func (w *world) baseFee(with map[string]any) (any, error) {
	wei, err := strconv.ParseUint(fmt.Sprint(with["wei"]), 10, 64)
	if err != nil {
		return nil, err
	}
	var none any
	if err := rig.Call(w.ctx, w.node.URL(), &none, "anvil_setNextBlockBaseFeePerGas", fmt.Sprintf("0x%x", wei)); err != nil {
		return nil, err
	}
	return nil, rig.Call(w.ctx, w.node.URL(), &none, "evm_mine")
}

// delivery is the last webhook delivery that came for an intent, or the one of a sequence.
func (w *world) delivery(with map[string]any) (any, error) {
	w.hook.mu.Lock()
	defer w.hook.mu.Unlock()
	for _, d := range slices.Backward(w.hook.came) {
		var body struct {
			Intent   string
			Sequence json.Number
		}
		if json.Unmarshal([]byte(d.Body), &body) != nil || body.Intent != with["intent"] {
			continue
		}
		if with["sequence"] == nil || fmt.Sprint(with["sequence"]) == body.Sequence.String() {
			return d, nil
		}
	}
	return nil, errors.New("no such delivery came")
}
