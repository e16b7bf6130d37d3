package operator

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/infra/embedded"
)

// backupShown is a backup that was made or restored.
type backupShown struct {
	Folder string            `json:"folder"`
	At     time.Time         `json:"at"`
	Head   eventlog.Position `json:"head"`
	Files  int               `json:"files"`
	Bytes  int64             `json:"bytes"`
}

func backupShownOf(folder string, b embedded.Backup) backupShown {
	shown := backupShown{Folder: folder, At: b.At, Head: b.Head, Files: len(b.Files)}
	for _, f := range b.Files {
		shown.Bytes += f.Bytes
	}
	return shown
}

func tellBackup(to io.Writer, b backupShown) error {
	return terminal.Remark(to, "%s: the log up to position %d, as of %s: %d files, %d bytes", b.Folder, b.Head, b.At.Format(time.RFC3339), b.Files, b.Bytes)
}

// Backup is the command "backup", which copies an embedded store.
func (p Program) Backup() *cobra.Command {
	var o terminal.Output
	var progress func(unit string) *terminal.Progress
	cmd := &cobra.Command{
		Use: "backup FOLDER", Short: "Copy the embedded store into a new folder, also while a service uses it", Args: cobra.ExactArgs(1),
		Long: "Copy the embedded store into a new folder: the log, the sealed bytes and the segments of the\n" +
			"archive, each as of one moment. A service may use the store meanwhile. The vault's key is not\n" +
			"copied: keep it apart from the backups. Another kind of store is backed up with its server's\n" +
			"own means. See docs/howto/backup.md.",
		Example: "  " + p.Name + " backup /backups/$(date +%F)",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.Resolve(cmd)
			if err != nil {
				return err
			}
			shown := progress("bytes")
			b, err := app.Backup(cmd.Context(), c, args[0], time.Now(), shown.Show)
			shown.End()
			if err != nil {
				return err
			}
			return terminal.Tell(cmd, &o, "", backupShownOf(args[0], b), tellBackup)
		},
	}
	p.Settings(cmd)
	progress = p.progressing(cmd)
	o.Only(cmd, terminal.AsTable, terminal.AsTable, terminal.AsJSON)
	return cmd
}

// Restore is the command "restore", which puts a backup into a directory that has no store.
func (p Program) Restore() *cobra.Command {
	var o terminal.Output
	var progress func(unit string) *terminal.Progress
	cmd := &cobra.Command{
		Use: "restore FOLDER", Short: "Put a backup into the directory of the embedded store, which must have none", Args: cobra.ExactArgs(1),
		Long: "Check a backup and put it into the directory of the setting store, which must have no store, and\n" +
			"its segments into the archive. Read models and queues are made again from the log when the\n" +
			"service starts. After an error the directory does not open, and the command can be repeated.\n" +
			p.RestoreHelp + "See docs/howto/backup.md for what to do before the service starts.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.Resolve(cmd)
			if err != nil {
				return err
			}
			shown := progress("bytes")
			b, err := app.Restore(cmd.Context(), c, args[0], shown.Show, p.Restored)
			shown.End()
			if err != nil {
				return err
			}
			return terminal.Tell(cmd, &o, "", backupShownOf(c.Store.Dir, b), tellBackup)
		},
	}
	p.Settings(cmd)
	progress = p.progressing(cmd)
	o.Only(cmd, terminal.AsTable, terminal.AsTable, terminal.AsJSON)
	return cmd
}
