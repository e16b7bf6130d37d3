package remote

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// vectors are signed transactions with their expected results.
func vectors(t *testing.T) (all []struct {
	Name, Expect, Raw, Hash, NodePolicy string
	ChainID                             uint64
}) {
	t.Helper()
	text, err := os.ReadFile("../../../infra/chain/tempo/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors json.RawMessage }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file.Vectors, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Each valid vector is decoded. It has a problem if nodes refuse it for good. Each invalid vector is
// an error.
func TestInspect(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, v := range vectors(t) {
		raw, err := hex.DecodeString(strings.TrimPrefix(v.Raw, "0x"))
		if err != nil || len(raw) == 0 {
			continue
		}
		got, err := inspect(raw, 0, now)
		if v.Expect != "valid" {
			if err == nil && got.Problem == "" {
				t.Errorf("%s: no error", v.Name)
			}
			continue
		}
		permanent := strings.HasPrefix(v.NodePolicy, "permanent")
		if err != nil || got.Hash.String() != v.Hash || permanent != (got.Problem != "") {
			t.Errorf("%s: hash %s, problem %q, %v", v.Name, got.Hash, got.Problem, err)
		}
		if other, err := inspect(raw, v.ChainID+1, now); err != nil || !strings.Contains(other.Problem, "signed for chain") {
			t.Errorf("%s: of another chain: %q, %v", v.Name, other.Problem, err)
		}
	}
}

// run executes a command with input, and returns its output.
func run(t *testing.T, cmd *cobra.Command, in string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// Transactions are given as hex, in files, and on standard input.
func TestGivenTransactions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "payroll.txt")
	if err := os.WriteFile(file, []byte("# January\n0x01\n\n \"02\",\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, in string
		args     []string
		want     string // the bytes in hex, or the beginning of an error
	}{
		{"hex", "", []string{"0x0a", "0b"}, "0a 0b"},
		{"a file", "", []string{file, "0c"}, "01 02 0c"},
		{"standard input", "0x03\n04", nil, "03 04"},
		{"standard input among others", "05", []string{"06", "-"}, "06 05"},
		{"nothing", "\n", nil, "there is no transaction"},
		{"no such file", "", []string{"0xzz"}, `"0xzz" is neither hex nor a file that can be read: no such file or directory`},
		{"a bad line", "01\n0x0", nil, "line 2 of standard input is not the hex of a transaction"},
	} {
		cmd := &cobra.Command{}
		cmd.SetIn(strings.NewReader(c.in))
		raws, err := rawTxs(cmd, c.args)
		var parts []string
		for _, raw := range raws {
			parts = append(parts, hex.EncodeToString(raw))
		}
		got := strings.Join(parts, " ")
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// Each format shows the same answer.
func TestFormats(t *testing.T) {
	const answer = `{"transactions":[
	  {"txHash":"0x01","chainId":5,"status":"executed","finalized":true,"sender":"0xa, b","nonce":7,"attempts":2,"eligibleAt":1800000000,"other":"kept"},
	  {"txHash":"0x02","chainId":5,"status":"queued","sender":"0xb","nonce":8,"waitingForNonce":3}], "nextCursor":"c1"}`
	show := func(args ...string) (string, error) {
		d := Door{}
		cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
			return Show(cmd, &d, "transactions", []byte(answer), tellTxs)
		}}
		d.Output.Flags(cmd)
		return run(t, cmd, "", args...)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "" +
			"HASH  CHAIN  STATUS           SENDER  NONCE  ATTEMPTS  ELIGIBLE              WAITS FOR\n" +
			"0x01  5      executed, final  0xa, b  7      2         2027-01-15T08:00:00Z  -\n" +
			"0x02  5      queued           0xb     8      0         -                     nonce 3 of its sender\n" +
			"there are more transactions; continue with --cursor c1\n"},
		{[]string{"-o", "csv"}, "" +
			"hash,chain,status,sender,nonce,attempts,eligible,waits_for\n" +
			"0x01,5,\"executed, final\",\"0xa, b\",7,2,2027-01-15T08:00:00Z,\n" +
			"0x02,5,queued,0xb,8,0,,nonce 3 of its sender\n"},
		{[]string{"--output", "jsonl"}, "" +
			`{"txHash":"0x01","chainId":5,"status":"executed","finalized":true,"sender":"0xa, b","nonce":7,"attempts":2,"eligibleAt":1800000000,"other":"kept"}` + "\n" +
			`{"txHash":"0x02","chainId":5,"status":"queued","sender":"0xb","nonce":8,"waitingForNonce":3}` + "\n"},
		{[]string{"-o", "json"}, answer + "\n"},
		{[]string{"--json"}, answer + "\n"},
	} {
		got, err := show(c.args...)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%v: %v\n%s", c.args, err, d)
		}
	}
	if _, err := show("-o", "xml"); err == nil || !strings.Contains(err.Error(), `"xml" is not one of table, json, jsonl and csv`) {
		t.Error(err)
	}
}

func TestRanges(t *testing.T) {
	for want, all := range map[string][]uint64{"": nil, "3": {3}, "1-3, 7, 9-10": {1, 2, 3, 7, 9, 10}} {
		if got := ranges(all); got != want {
			t.Errorf("%v: %s", all, got)
		}
	}
}
