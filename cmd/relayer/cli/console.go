// Package cli has the commands that call a running relayer over HTTP: operators' commands on
// its internal listener, and clients' commands on its API of intents. They hold no key and open
// no store.
package cli

import (
	"github.com/spf13/cobra"

	"github.com/tempo-watchtower/watchtower/cmd/program/remote"
)

// keyVar is the variable with the API key, for both listeners.
const keyVar = "RELAYER_API_KEY"

var (
	internal = remote.Listener{Name: "the internal listener (metrics-listen)", Variable: "RELAYER_ADMIN_URL", Standard: "http://127.0.0.1:8421", Keys: []string{keyVar}, Member: remote.Internal} //nolint:gochecknoglobals // a constant
	front    = remote.Listener{Name: "the API of intents (relay.listen)", Variable: "RELAYER_URL", Standard: "http://127.0.0.1:8422", Keys: []string{keyVar}, Member: remote.Relay}               //nolint:gochecknoglobals // a constant
)

// Intents is the command "intents".
func Intents() *cobra.Command { return intents() }

// Webhooks is the command "webhooks".
func Webhooks() *cobra.Command { return webhooks() }

// Operators returns the commands on the internal listener.
func Operators() []*cobra.Command { return []*cobra.Command{signers(), safeguards(), budgets()} }

// Commands returns all commands of this package.
func Commands() []*cobra.Command { return append(Operators(), intents(), webhooks()) }

// Internal is the internal listener of a relayer.
func Internal() remote.Listener { return internal }

// reasoned adds the flag that all changes require.
func reasoned(cmd *cobra.Command, reason *string) *cobra.Command {
	cmd.Flags().StringVar(reason, "reason", "", "the reason, for the log")
	_ = cmd.MarkFlagRequired("reason") // the flag exists
	return cmd
}
