package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/app"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
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
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "create", Short: "Create a key and print it once", Args: cobra.NoArgs,
		Example: "  " + p.Name + " keys create --name 'payroll' --scope submit,read,cancel",
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := w.key(time.Now())
			if err != nil {
				return terminal.With(terminal.Usage, err)
			}
			return p.withKeys(cmd, func(ctx context.Context, keys commands.Keys) error {
				token, made, err := keys.Create(ctx, key, Meta())
				if err != nil {
					return err
				}
				if o.Format == terminal.AsTable {
					fmt.Fprintf(cmd.ErrOrStderr(), "Key %s of client %s, which is not shown again:\n", made.ID, made.Owner()) //nolint:errcheck // the next line tells
				}
				shown := map[string]string{"id": made.ID.String(), "client": made.Owner(), "token": token}
				return terminal.Tell(cmd, &o, "", shown, func(to io.Writer, shown map[string]string) error {
					return terminal.Remark(to, "%s", shown["token"])
				})
			})
		},
	}
	o.Only(cmd, terminal.AsTable, terminal.AsTable, terminal.AsJSON)
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

// keyShown is a key as it is listed.
type keyShown struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Client  string   `json:"client"`
	Scopes  []string `json:"scopes"`
	Senders []string `json:"senders"` // empty: any
	// Signers and Pools are those that the key may use; both empty: any.
	Signers   []string `json:"signers,omitempty"`
	Pools     []string `json:"pools,omitempty"`
	CreatedAt string   `json:"createdAt"`
	State     string   `json:"state"`
}

func tellKeys(to io.Writer, all []keyShown) error {
	var rows [][]string
	for _, k := range all {
		senders := "any"
		if n := len(k.Senders); n > 0 {
			senders = fmt.Sprint(n)
		}
		signers, pools := "any", "any"
		if len(k.Signers)+len(k.Pools) > 0 {
			signers, pools = fmt.Sprint(len(k.Signers)), cmp.Or(strings.Join(k.Pools, ","), "none")
		}
		rows = append(rows, []string{k.ID, k.Name, k.Client, strings.Join(k.Scopes, ","), senders, signers, pools, k.CreatedAt, k.State})
	}
	return terminal.Table(to, "ID\tNAME\tCLIENT\tSCOPES\tSENDERS\tSIGNERS\tPOOLS\tCREATED\tSTATE", rows)
}

func (p Program) listKeys() *cobra.Command {
	var o terminal.Output
	cmd := &cobra.Command{
		Use: "list", Short: "List all keys, also revoked and expired keys, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withKeys(cmd, func(ctx context.Context, keys commands.Keys) error {
				entries, err := keys.List(ctx)
				if err != nil {
					return err
				}
				shown := []keyShown{}
				for _, e := range entries {
					shown = append(shown, showKey(e, time.Now()))
				}
				return terminal.Tell(cmd, &o, "", shown, tellKeys)
			})
		},
	}
	p.Settings(cmd)
	o.Flags(cmd)
	return cmd
}

func showKey(e access.Entry, now time.Time) keyShown {
	shown := keyShown{
		ID: e.Key.ID.String(), Name: e.Key.Name, Client: e.Key.Owner(), Scopes: []string{}, Senders: []string{},
		CreatedAt: e.CreatedAt.UTC().Format(time.RFC3339), State: "in force",
	}
	for _, s := range e.Key.Scopes {
		shown.Scopes = append(shown.Scopes, string(s))
	}
	for _, s := range e.Key.Senders {
		shown.Senders = append(shown.Senders, s.String())
	}
	for _, s := range e.Key.Signers {
		shown.Signers = append(shown.Signers, s.String())
	}
	shown.Pools = append(shown.Pools, e.Key.Pools...)
	switch {
	case !e.RevokedAt.IsZero():
		shown.State = "revoked " + e.RevokedAt.UTC().Format(time.RFC3339)
		if e.Reason != "" {
			shown.State += ": " + e.Reason
		}
	case !e.InForce(now):
		shown.State = "expired"
	case e.Key.ExpiresAt != 0:
		shown.State += " until " + time.Unix(int64(e.Key.ExpiresAt), 0).UTC().Format(time.RFC3339)
	}
	return shown
}

func (p Program) revokeKey() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a key", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var id access.KeyID
			if err := id.UnmarshalText([]byte(args[0])); err != nil {
				return terminal.With(terminal.Usage, err)
			}
			return p.withKeys(cmd, func(ctx context.Context, keys commands.Keys) error {
				_, err := keys.Revoke(ctx, id, reason, Meta())
				if errors.Is(err, access.ErrUnknownKey) {
					return terminal.With(terminal.NotFound, err)
				}
				return err
			})
		},
	}
	p.Settings(cmd)
	cmd.ValidArgsFunction = p.completeKeys
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the record")
	return cmd
}

// completeKeysTime is how long a shell waits for the store to complete a key's id.
const completeKeysTime = time.Second

// completeKeys completes the ids of the keys that are not revoked, from the configured store. It only
// reads, and a service may be running.
func (p Program) completeKeys(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeKeysTime)
	defer cancel()
	entries, err := p.readKeys(ctx, cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, e := range entries {
		if e.RevokedAt.IsZero() {
			ids = append(ids, cobra.CompletionWithDesc(e.Key.ID.String(), terminal.Plain(e.Key.Name)))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// keysMost is the number of events about keys that are read for a completion.
const keysMost = 10_000

// readKeys reads the keys from the log.
func (p Program) readKeys(ctx context.Context, cmd *cobra.Command) (entries []access.Entry, err error) {
	c, err := p.completing(cmd)
	if err != nil {
		return nil, err
	}
	log, err := app.InspectLog(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	recorded, err := log.Stream(ctx, access.Stream, 0, keysMost)
	if err != nil {
		return nil, err
	}
	var s access.State
	codec := access.Codec()
	for _, r := range recorded {
		e, err := codec.Decode(r.Name, r.Data)
		if err != nil {
			return nil, err
		}
		s = s.Evolve(e)
	}
	for _, e := range s.Keys {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b access.Entry) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return entries, nil
}
