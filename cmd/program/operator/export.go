package operator

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/auditor"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// exporting holds the flags of an export.
type exporting struct {
	from, to, stream, format, out string
	gzip, zstd                    bool
}

func (e exporting) selection() (sel auditor.Selection, err error) {
	if e.from != "" {
		if sel.From, err = auditor.ParsePoint(e.from); err != nil {
			return sel, err
		}
	}
	if e.to != "" {
		if sel.To, err = auditor.ParsePoint(e.to); err != nil {
			return sel, err
		}
		if sel.To == (auditor.Point{}) {
			return sel, errors.New("--to must be a position: positions begin with 1")
		}
	}
	switch e.format {
	case "jsonl":
	case "csv":
		sel.CSV = true
	default:
		return sel, fmt.Errorf("format %q is neither jsonl nor csv", e.format)
	}
	if e.gzip && e.zstd {
		return sel, errors.New("--gzip and --zstd exclude each other")
	}
	sel.Stream = e.stream
	return sel, nil
}

func (p Program) export() *cobra.Command {
	var e exporting
	var o terminal.Output
	var progress func(unit string) *terminal.Progress
	cmd := &cobra.Command{
		Use: "export", Short: "Write events as lines of JSON or as CSV", Args: cobra.NoArgs,
		Long:    "Write a range of events as lines of JSON or as CSV, optionally compressed. --from and --to\nare positions, or times such as 2026-01-31T12:00:00Z, and include the events at them.\nPositions begin with 1.",
		Example: "  " + p.Name + " audit export --from 2026-01-01T00:00:00Z --to 2026-01-31T23:59:59Z --stream tx-42431- --zstd > january.jsonl.zst",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("output") {
				e.format = string(o.Format)
			}
			sel, err := e.selection()
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			shown := progress("positions")
			sel.Progress = func(at, end eventlog.Position) { shown.Show("export", uint64(at), uint64(end)) }
			return p.withLog(cmd, func(ctx context.Context, _ config.Config, log auditor.Source) error {
				written, err := e.write(ctx, cmd.OutOrStdout(), log, sel)
				shown.End()
				fmt.Fprintf(p.Stderr, "%d events\n", written) //nolint:errcheck // the error that counts is err
				return err
			})
		},
	}
	p.Settings(cmd)
	progress = p.progressing(cmd)
	o.Only(cmd, terminal.AsLines, terminal.AsLines, terminal.AsCSV)
	flags := cmd.Flags()
	flags.StringVar(&e.from, "from", "", "a position or a time; by default the beginning")
	flags.StringVar(&e.to, "to", "", "a position or a time; by default the end")
	flags.StringVar(&e.stream, "stream", "", "only streams whose names have this prefix, such as tx-42431-")
	flags.StringVar(&e.format, "format", "jsonl", "the same as -o")
	flags.StringVar(&e.out, "out", "", "a new file to write to; by default standard output")
	flags.BoolVar(&e.gzip, "gzip", false, "compress with gzip")
	flags.BoolVar(&e.zstd, "zstd", false, "compress with Zstandard")
	return cmd
}

// write exports to standard output or a file.
func (e exporting) write(ctx context.Context, stdout io.Writer, log auditor.Source, sel auditor.Selection) (uint64, error) {
	if e.out == "" {
		return e.writeTo(ctx, stdout, log, sel)
	}
	f, err := os.OpenFile(e.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	written, err := e.writeTo(ctx, f, log, sel)
	return written, errors.Join(err, f.Sync(), f.Close())
}

// writeTo exports, compressed or not.
func (e exporting) writeTo(ctx context.Context, to io.Writer, log auditor.Source, sel auditor.Selection) (uint64, error) {
	const buffer = 1 << 20
	buffered := bufio.NewWriterSize(to, buffer)
	packed, err := e.packer(buffered)
	if err != nil {
		return 0, err
	}
	written, err := auditor.Export(ctx, log, sel, packed)
	return written, errors.Join(err, packed.Close(), buffered.Flush())
}

// packer compresses its input if the flags say so.
func (e exporting) packer(to io.Writer) (io.WriteCloser, error) {
	switch {
	case e.gzip:
		return gzip.NewWriter(to), nil
	case e.zstd:
		return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1))
	}
	return plain{to}, nil
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }
