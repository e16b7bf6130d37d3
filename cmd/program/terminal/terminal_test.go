package terminal

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// Text written by nodes, clients and other operators cannot control a terminal.
func TestPlain(t *testing.T) {
	if got := Plain("a\x1b[2Jb\nc\u009bd é"); got != "a[2Jbcd é" {
		t.Errorf("%q", got)
	}
}

// Every command called in a wrong way prints its usage, and ends with the status for that.
func TestRun(t *testing.T) {
	for args, want := range map[string]struct {
		status Status
		says   string
	}{
		"budgets list":            {Usage, "program: accepts 1 arg(s), received 0\nusage: program budgets list CHAIN [flags]\nfor details: program budgets list --help\n"},
		"budgets list 1 --jsom":   {Usage, "program: unknown flag: --jsom\nusage: program budgets list CHAIN [flags]\nfor details: program budgets list --help\n"},
		"budgets list 1 --json=x": {Usage, "program: invalid argument \"x\" for \"--json\" flag: strconv.ParseBool: parsing \"x\": invalid syntax\nusage: program budgets list CHAIN [flags]\nfor details: program budgets list --help\n"},
		"budgets list 1":          {Failed, "program: EOF\n"}, // an error of the command's own work is no misuse
		"budgets lsit 1":          {Usage, "program: unknown command \"lsit\" for \"program budgets\"; did you mean list?\nusage: program budgets [flags]\nfor details: program budgets --help\n"},
		"budget":                  {Usage, "program: unknown command \"budget\" for \"program\"; did you mean budgets?\nusage: program [flags]\nfor details: program --help\n"},
		"probe":                   {Failed, "program: EOF\n"},
		"probe --x":               {Failed, "program: unknown flag: --x\nusage: program probe [flags]\nfor details: program probe --help\n"},
		"budgets":                 {OK, ""},
	} {
		root := &cobra.Command{Use: "program"}
		parent := &cobra.Command{Use: "budgets", Short: "parent"}
		list := &cobra.Command{Use: "list CHAIN", Short: "list", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command, []string) error { return io.EOF }}
		list.Flags().Bool("json", false, "")
		parent.AddCommand(list)
		probe := &cobra.Command{Use: "probe", Short: "probe", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return io.EOF }}
		MisuseIs(probe, Failed)
		root.AddCommand(parent, probe)
		var out, errs bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&errs)
		Prepare(root)
		root.SetArgs(strings.Fields(args))
		if got := Run(t.Context(), root); got != want.status || errs.String() != want.says {
			t.Errorf("%s: %d, want %d\n%s", args, got, want.status, errs.String())
		}
	}
}

// On a terminal, heads and statuses have colours, and the columns are as wide as without.
func TestColours(t *testing.T) {
	rows := [][]string{{"0x01", "executed, final"}, {"0x02", "expired"}, {"0x03", ""}}
	var plain, coloured bytes.Buffer
	if err := Table(&plain, "HASH\tSTATUS", rows); err != nil {
		t.Fatal(err)
	}
	if err := Table(&page{&coloured, true}, "HASH\tSTATUS", rows); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1mHASH\x1b[0m  \x1b[1mSTATUS\x1b[0m\n0x01  \x1b[32mexecuted, final\x1b[0m\n0x02  \x1b[31mexpired\x1b[0m\n0x03  -\n"
	if coloured.String() != want {
		t.Errorf("%q", coloured.String())
	}
	for _, code := range []string{bold, red, green, "0"} {
		want = strings.ReplaceAll(want, "\x1b["+code+"m", "")
	}
	if plain.String() != want {
		t.Errorf("%q", plain.String())
	}
	cmd := &cobra.Command{}
	cmd.SetOut(io.Discard)
	if Colours(cmd) {
		t.Error("colours without a terminal")
	}
}

// The progress tells the rate and the time that remains, of each step by itself.
func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	p := NewProgress(&out, "events", func() time.Time { return now })
	for i := range 6 {
		p.Show("read", uint64(1000*i), 10_000)
		now = now.Add(time.Second)
	}
	p.Show("write", 7, 0)
	now = now.Add(3 * time.Second)
	p.Show("write", 10, 0)
	p.End()
	want := "read: 20%, 2,000 of 10,000 events, 1,000/s, 8s left\n" +
		"read: 40%, 4,000 of 10,000 events, 1,000/s, 6s left\n" +
		"write: 7 events\n" +
		"write: 10 events, 1/s\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
	quiet := NewProgress(nil, "events", func() time.Time { return now })
	quiet.Show("read", 1, 2)
	quiet.End()
}
