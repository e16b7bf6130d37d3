package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/eventlog"
)

// Bounds from which on something is a finding.
const (
	lagMost   = 10_000           // events that a reader may be behind, as the alert WatchtowerReaderBehind has it
	dueMost   = 15 * time.Second // for which a transaction may be due, as the alert WatchtowerNothingIsSent has it
	headMost  = 5 * time.Minute  // age of a chain's newest block
	keysMost  = 10_000           // events about keys that are read
	loosePerm = fs.FileMode(0o077)
)

// store diagnoses the log, the keys and the files beside it.
func (x Examination) store(ctx context.Context, in app.Inspection) (*Part, error) {
	p := partOf("store " + x.Config.Store.String())
	head, err := in.Log.Head(ctx)
	if err != nil {
		return nil, err
	}
	p.say("log", "%d events", head)
	if head > 0 && !in.Sparse {
		last, err := in.Log.Page(ctx, head-1, 1)
		if err != nil {
			return nil, err
		}
		for _, r := range last {
			p.say("last event", "%s, %s", r.Name, stamp(r.At))
		}
	}
	x.vaultKey(p, head)
	return p, x.keys(ctx, in, p)
}

// vaultKey diagnoses the file of the key that seals signed bytes.
func (x Examination) vaultKey(p *Part, head eventlog.Position) {
	name := x.Config.VaultKeyFile
	if name == "" {
		return
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && head == 0:
		p.say("vault key", "%s, which the first start makes", name)
	case errors.Is(err, fs.ErrNotExist):
		p.find(Finding{Code: "vault-key-missing", Says: "the vault key " + name + " does not exist, and the store has events", Do: "restore the file from its backup, or name it by vault-key-file: without it no stored transaction can be sent"})
	case err != nil:
		p.find(Finding{Code: "vault-key-unreadable", Says: "the vault key: " + err.Error(), Do: "let the service's user read it"})
	default:
		p.say("vault key", "%s, mode %04o", name, info.Mode().Perm())
		if info.Mode().Perm()&loosePerm != 0 {
			p.find(Finding{Code: "vault-key-exposed", Says: fmt.Sprintf("others than its owner may use the vault key %s (mode %04o)", name, info.Mode().Perm()), Do: "chmod 600 " + name})
		}
	}
}

// keys diagnoses who may use the API.
func (x Examination) keys(ctx context.Context, in app.Inspection, p *Part) error {
	recorded, err := in.Log.Stream(ctx, access.Stream, 0, keysMost)
	if err != nil {
		return err
	}
	var s access.State
	codec := access.Codec()
	for _, r := range recorded {
		e, err := codec.Decode(r.Name, r.Data)
		if err != nil {
			return err
		}
		s = s.Evolve(e)
	}
	inForce := 0
	for _, e := range s.Keys {
		if e.InForce(x.Now()) {
			inForce++
		}
	}
	p.say("API keys", "%d, %d of them in force", len(s.Keys), inForce)
	problems := config.Problems{}
	switch err := x.Config.CheckAccess(s.Closed()); {
	case errors.As(err, &problems):
		for _, one := range problems {
			p.find(Finding{Code: "open-to-strangers", Says: one.Text})
		}
	case err != nil:
		return err
	case s.Closed() && inForce == 0 && !x.Config.OpenAccess:
		p.find(Finding{Code: "no-key-in-force", Says: "every API key is revoked or expired, so the API refuses all requests", Do: "make a key: " + x.Program + " keys create"})
	}
	return nil
}

// readers diagnoses the readers of the log, and who runs them.
func (x Examination) readers(ctx context.Context, in app.Inspection) (*Part, error) {
	p := partOf("readers of the log")
	head, err := in.Log.Head(ctx)
	if err != nil {
		return nil, err
	}
	now := x.Now()
	var idle []string
	for _, r := range x.Readers {
		at, err := in.Checkpoint(ctx, r)
		if err != nil {
			return nil, err
		}
		holder, until, err := in.Work.Lease(ctx, r.Lease)
		if err != nil {
			return nil, err
		}
		who := "nobody runs it"
		if runs := holder != "" && until.After(now); runs {
			who = "run by " + holder
		} else {
			idle = append(idle, r.Name)
		}
		behind := uint64(max(head, at) - at)
		p.say(r.Name, "position %d of %d; %s", at, max(head, at), who)
		if behind > lagMost {
			p.find(Finding{
				Code: "reader-behind", Says: fmt.Sprintf("reader %s is %d events behind", r.Name, behind),
				Next: "it catches up while a service runs", Do: "if it stands still, look for \"" + r.Name + "\" in the service's log and in /health",
			})
		}
	}
	if slices.ContainsFunc(x.Readers, func(r app.LogReader) bool { return !slices.Contains(idle, r.Name) }) || len(idle) == 0 {
		for _, name := range idle {
			p.find(Finding{Code: "reader-unheld", Says: "no process runs the reader " + name, Next: "a running service takes it over within seconds"})
		}
		return p, nil
	}
	p.find(Finding{Code: "not-running", Says: "no service runs on this store: no lease is held", Do: "start it: " + x.Program + " serve"})
	return p, nil
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
