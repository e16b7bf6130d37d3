package main

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/delivery/tx"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/handler"
	"github.com/tempo-watchtower/watchtower/eventlog/port"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
)

// accepted is a directory with a log of one transaction.
func accepted(t *testing.T, hash chain.Hash) (dir string) {
	t.Helper()
	dir = t.TempDir()
	db, err := embedded.Open(dir, embedded.Options{})
	must(t, err)
	accept(t, db.Log(), hash)
	must(t, db.Close())
	return dir
}

func accept(t *testing.T, log port.Store, hash chain.Hash) {
	t.Helper()
	o, err := handler.Begin(rand.Reader, eventlog.Meta{Actor: "tester"})
	must(t, err)
	at := time.Unix(1_800_000_000, 0).UTC()
	_, err = commands.Transactions{Store: log, Codec: tx.Codec(), Random: rand.Reader}.Handle(t.Context(), tx.Stream(42431, hash),
		tx.Accept{Accepted: tx.Accepted{Chain: 42431, Hash: hash, Signature: chain.Secp256k1, EligibleAt: uint64(at.Unix()), Bytes: 100, RawHash: hash, At: at}}, o)
	must(t, err)
}

// asking runs audit commands on a store. expect checks the exit status and a part of the output.
func asking(t *testing.T, store ...string) (audit func(args ...string) (string, int), expect func(status int, says string, args ...string)) {
	audit = func(args ...string) (string, int) {
		var out, log bytes.Buffer
		c := command(strings.NewReader(""), &out, &log)
		c.SetArgs(append(append([]string{"audit"}, args...), store...))
		if status := terminal.Run(t.Context(), c); status != terminal.OK {
			return out.String() + log.String(), int(status)
		}
		return out.String(), 0
	}
	return audit, func(status int, says string, args ...string) {
		t.Helper()
		if text, got := audit(args...); got != status || !strings.Contains(text, says) {
			t.Errorf("audit %v ended with %d, want %d and %q: %s", args, got, status, says, text)
		}
	}
}

// The audit commands print their findings, and exit with the documented status.
func TestAuditCommands(t *testing.T) {
	hash := chain.Hash{7}
	dir := accepted(t, hash)
	audit, expect := asking(t, "--store", "embedded:"+dir)
	expect(0, "1  tx.accepted.v1", "show", hash.String(), "--chain", "42431")
	expect(0, `"why": `, "show", hash.String(), "--chain", "42431", "--json")
	expect(4, "transaction "+hash.String()+" on chain 1: the log has no event of it", "show", hash.String(), "--chain", "1")
	expect(2, "0x07 is not a transaction's hash: hash must be 0x and 64 hex digits", "show", "0x07")
	expect(4, `stream "0707", because it is neither a 0x hash nor SENDER/GROUP: the log has no event of it`, "show", "0707")
	expect(2, "0x07/1 is not SENDER/GROUP: address must be 0x and 40 hex digits", "show", "0x07/1")
	expect(0, "1  tx.accepted.v1", "show", hash.String()) // the log has it on one chain
	expect(4, "on any chain: the log has no event of it", "show", chain.Hash{9}.String())
	expect(0, `"Status": "queued"`, "replay", hash.String(), "--chain", "42431", "--version", "1")
	expect(4, "did not exist at that point: it begins at position 1, at 20", "replay", hash.String(), "--chain", "42431", "--at", "2001-01-01T00:00:00Z")
	expect(4, "has no version 99 yet: its last is 1", "replay", hash.String(), "--chain", "42431", "--version", "99")
	expect(4, "position 99 does not exist yet: the log ends at 1", "replay", hash.String(), "--chain", "42431", "--position", "99")
	expect(2, "--version 0 does not exist", "replay", hash.String(), "--chain", "42431", "--version", "0")
	expect(4, "the log has no seal", "seal")
	expect(1, "no such file", "key")
	must(t, os.WriteFile(filepath.Join(dir, "audit.key"), []byte(hex.EncodeToString(make([]byte, 32))), 0o600))
	const public = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29" // of 32 zeros
	expect(0, public, "key")

	expect(0, "no faults", "verify")
	if said, status := audit("verify", "--key", public); status != 2 || strings.Count(said, "the log has no seal yet") != 1 {
		t.Errorf("without a seal verify ends with %d: %s", status, said)
	}
	expect(2, "--key 12: it must be 64 hex digits, as printed by audit key", "verify", "--key", "12")
	expect(2, "it must be 64 hex digits", "verify", "--key", strings.Repeat("é", 32))
	expect(2, "no such file", "verify", "--seals", filepath.Join(dir, "nothing"))

	plain, _ := audit("export")
	gz, _ := audit("export", "--gzip")
	unzipped, err := gzip.NewReader(strings.NewReader(gz))
	must(t, err)
	text, err := io.ReadAll(unzipped)
	if err != nil || string(text) != plain || strings.Count(plain, "\n") != 1 {
		t.Errorf("gzip: %v\n%s\n%s", err, text, plain)
	}
	file := filepath.Join(t.TempDir(), "log.zst")
	expect(0, "", "export", "--zstd", "--out", file)
	packed, err := os.Open(file)
	must(t, err)
	defer packed.Close() //nolint:errcheck // it was only read
	unpacked, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1))
	must(t, err)
	defer unpacked.Close()
	if text, err = io.ReadAll(unpacked); err != nil || string(text) != plain {
		t.Errorf("zstd: %v\n%s", err, text)
	}
	expect(1, "file exists", "export", "--out", file)
	expect(2, "neither jsonl nor csv", "export", "--format", "xml")
	expect(2, "--to must be a position", "export", "--to", "0")
	if same, status := audit("export", "--from", "1", "--to", "1"); status != 0 || same != plain {
		t.Errorf("of one position export ends with %d: %s", status, same)
	}
	expect(2, "exclude each other", "export", "--gzip", "--zstd")

	damage(t, dir)
	expect(1, "position 1, tx-42431-"+hash.String()+" version 1: tx.accepted.v1 does not match its link", "verify")
	_, expect = asking(t, "--store", "embedded:"+filepath.Join(dir, "nothing"))
	expect(2, "no such file", "verify")
}

// The audit works on a log in an EventStoreDB, and names the altered event.
func TestAuditOfAnEventStore(t *testing.T) {
	hash := chain.Hash{8}
	file := filepath.Join(t.TempDir(), "log")
	// serving runs a server on the file during do.
	serving := func(do func(store string)) {
		data, err := esdbtest.OpenData(file, time.Now)
		must(t, err)
		server, err := esdbtest.New(esdbtest.Options{Data: data})
		must(t, err)
		do(server.URL())
		server.Stop()
		must(t, data.Close())
	}
	serving(func(store string) {
		log, err := eventstoredb.Open(t.Context(), store, eventstoredb.Options{})
		must(t, err)
		accept(t, log, hash)
		must(t, log.Close(t.Context()))

		// The audit does not use the database beside it.
		audit, expect := asking(t, "--store", store, "--database", "postgres://127.0.0.1:1/none")
		expect(0, "1  tx.accepted.v1", "show", hash.String(), "--chain", "42431")
		expect(0, `"Status": "queued"`, "replay", hash.String(), "--chain", "42431", "--version", "1")
		expect(0, "no faults", "verify")
		if lines, status := audit("export"); status != 0 || strings.Count(lines, "\n") != 1 {
			t.Errorf("export ended with %d: %s", status, lines)
		}
	})

	kept, err := os.ReadFile(file)
	must(t, err)
	altered := regexp.MustCompile(`"Data":"[^"]+"`).ReplaceAllFunc(kept, func(field []byte) []byte {
		var value struct{ Data []byte }
		must(t, json.Unmarshal([]byte("{"+string(field)+"}"), &value))
		value.Data = bytes.Replace(value.Data, []byte(`"bytes":100`), []byte(`"bytes":101`), 1)
		made, err := json.Marshal(value)
		must(t, err)
		return made[1 : len(made)-1]
	})
	if bytes.Equal(kept, altered) {
		t.Fatalf("the event is not in the file: %s", kept)
	}
	must(t, os.WriteFile(file, altered, 0o600))
	serving(func(store string) {
		_, expect := asking(t, "--store", store, "--database", "postgres://127.0.0.1:1/none")
		expect(1, "tx-42431-"+hash.String()+" version 1: tx.accepted.v1 does not match its link", "verify")
	})
}

// damage alters an event directly in the store.
func damage(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, "events.db")
	db, err := os.ReadFile(name)
	must(t, err)
	at := bytes.Index(db, []byte(`"bytes":100`))
	if at < 0 {
		t.Fatal("the event is not in the file")
	}
	db[at+len(`"bytes":10`)] = '1'
	must(t, os.WriteFile(name, db, 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
