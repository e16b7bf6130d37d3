package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
)

// Keys is the command "keys", which creates, lists and revokes API keys.
func (p Program) Keys() *cobra.Command {
	parent := &cobra.Command{
		Use: "keys", Short: "Create, list and revoke API keys",
		Long: "Create, list and revoke API keys, in the store that the configuration names.\n" +
			"Every service on the store applies changes at once. From the first key on, the API\n" +
			"refuses requests without a key. A running service has an embedded store to itself:\n" +
			"stop it first, or use /admin/keys of its internal listener.",
	}
	parent.AddCommand(p.createKey(), p.listKeys(), p.revokeKey())
	return parent
}

// withKeys opens the configured store and runs do.
func (p Program) withKeys(cmd *cobra.Command, do func(ctx context.Context, keys commands.Keys) error) error {
	c, err := p.Resolve(cmd)
	if err != nil {
		return err
	}
	if c.Store.Engine == config.Memory {
		return errors.New("a store in memory holds no keys")
	}
	return p.WithStorage(cmd, c, func(ctx context.Context, s app.Storage, _ *slog.Logger) error {
		return do(ctx, app.Keys(s.Log))
	})
}

// wanted holds the flags of a new key.
type wanted struct {
	name, client    string
	scopes, senders []string
	signers, pools  []string // of the relay
	perSecond       int
	burst           int
	expires         time.Duration
}

func (w wanted) key(now time.Time) (key access.Key, err error) {
	key.Name, key.Client = w.name, w.client
	for _, s := range w.scopes {
		key.Scopes = append(key.Scopes, access.Scope(s))
	}
	if key.Senders, err = addresses("sender", w.senders); err != nil {
		return key, err
	}
	if key.Signers, err = addresses("signers", w.signers); err != nil {
		return key, err
	}
	key.Pools = w.pools
	if w.perSecond != 0 || w.burst != 0 {
		key.Rate = &access.Rate{PerSecond: w.perSecond, Burst: w.burst}
	}
	if w.expires != 0 {
		key.ExpiresAt = uint64(now.Add(w.expires).Unix())
	}
	return key, nil
}

// addresses parses the values of a flag.
func addresses(flag string, texts []string) (all []chain.Address, err error) {
	for _, text := range texts {
		a, err := chain.ParseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		all = append(all, a)
	}
	return all, nil
}

func (p Program) createKey() *cobra.Command {
	var w wanted
	cmd := &cobra.Command{
		Use: "create", Short: "Create a key and print it once", Args: cobra.NoArgs,
		Example: "  " + p.Name + " keys create --name 'payroll' --scope submit,read,cancel",
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := w.key(time.Now())
			if err != nil {
				return err
			}
			return p.withKeys(cmd, func(ctx context.Context, keys commands.Keys) error {
				token, made, err := keys.Create(ctx, key, Meta())
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "Key %s of client %s, which is not shown again:\n", made.ID, made.Owner()) //nolint:errcheck // the next line tells
				_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&w.name, "name", "", "a name that tells operators the key's purpose")
	flags.StringVar(&w.client, "client", "", "the client that the key belongs to: 1 to 64 of A-Z, a-z, 0-9 and ._:-, or the id of an older key, whose client it is then. Keys of one client see the same transactions. By default the key is a client by itself: a later key sees its transactions only if it names this key's id")
	flags.StringSliceVar(&w.scopes, "scope", nil, "the key's scopes: "+scopes()+"; may be repeated")
	flags.StringSliceVar(&w.senders, "sender", nil, "an address; only its transactions may be submitted and seen. May be repeated")
	flags.StringSliceVar(&w.signers, "signers", nil, "addresses of the relayer's signers, separated by commas: with signers or pools, the key's intents may name only these")
	flags.StringSliceVar(&w.pools, "pools", nil, "names of the relayer's pools, separated by commas, likewise; a pool's signers may not be named by themselves")
	flags.IntVar(&w.perSecond, "rate", 0, "requests per second, instead of rate.key")
	flags.IntVar(&w.burst, "burst", 0, "requests at once, instead of rate.key-burst")
	flags.DurationVar(&w.expires, "expires", 0, "how long the key is valid, such as 720h; by default without end")
	p.Settings(cmd) // after the command's own flags: --pools is the key's, not the setting of the relayer
	return cmd
}

func scopes() string {
	all := make([]string, len(access.Scopes()))
	for i, s := range access.Scopes() {
		all[i] = string(s)
	}
	return strings.Join(all, ", ")
}

func (p Program) listKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List all keys, also revoked and expired keys, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withKeys(cmd, func(ctx context.Context, keys commands.Keys) error {
				entries, err := keys.List(ctx)
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tNAME\tCLIENT\tSCOPES\tSENDERS\tSIGNERS\tPOOLS\tCREATED\tSTATE") //nolint:errcheck // Flush tells
				for _, e := range entries {
					fmt.Fprintln(w, keyLine(e, time.Now())) //nolint:errcheck // Flush tells
				}
				return w.Flush()
			})
		},
	}
	p.Settings(cmd)
	return cmd
}

func keyLine(e access.Entry, now time.Time) string {
	scopes := make([]string, len(e.Key.Scopes))
	for i, s := range e.Key.Scopes {
		scopes[i] = string(s)
	}
	senders, signers, pools := "any", "any", "any"
	if n := len(e.Key.Senders); n > 0 {
		senders = fmt.Sprint(n)
	}
	if len(e.Key.Signers)+len(e.Key.Pools) > 0 {
		signers, pools = fmt.Sprint(len(e.Key.Signers)), cmp.Or(strings.Join(e.Key.Pools, ","), "none")
	}
	state := "in force"
	switch {
	case !e.RevokedAt.IsZero():
		state = "revoked " + e.RevokedAt.UTC().Format(time.RFC3339)
		if e.Reason != "" {
			state += ": " + e.Reason
		}
	case !e.InForce(now):
		state = "expired"
	case e.Key.ExpiresAt != 0:
		state += " until " + time.Unix(int64(e.Key.ExpiresAt), 0).UTC().Format(time.RFC3339)
	}
	return strings.Join([]string{
		e.Key.ID.String(), e.Key.Name, e.Key.Owner(), strings.Join(scopes, ","), senders, signers, pools, e.CreatedAt.UTC().Format(time.RFC3339), state,
	}, "\t")
}

func (p Program) revokeKey() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a key", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var id access.KeyID
			if err := id.UnmarshalText([]byte(args[0])); err != nil {
				return err
			}
			return p.withKeys(cmd, func(ctx context.Context, keys commands.Keys) error {
				_, err := keys.Revoke(ctx, id, reason, Meta())
				return err
			})
		},
	}
	p.Settings(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the record")
	return cmd
}
