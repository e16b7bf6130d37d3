// Command vault serves keys of HashiCorp Vault's transit engine to a relayer, by Web3Signer's
// HTTP API. The engine supports P-256 and not secp256k1, so it is for Tempo only. See
// docs/howto/signers.md.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program"
)

func main() { os.Exit(program.Main(signer(os.Getenv))) }

// signer is the program. Its flags default to the variables of Vault's own programs.
func signer(getenv func(string) string) program.Program {
	return program.Program{
		Name: "signer-vault",
		Keys: "MOUNT/NAME@VERSION, such as transit/relayer@1",
		Service: func(flags *flag.FlagSet) program.Open {
			s := settings{token: getenv("VAULT_TOKEN")}
			flags.StringVar(&s.address, "vault", getenv("VAULT_ADDR"), "the URL of Vault: https, or http on this machine; by default VAULT_ADDR")
			flags.StringVar(&s.tokenFile, "token-file", "", "a `file` with the token, read again for each request, as Vault Agent writes it; by default the token is in VAULT_TOKEN")
			flags.StringVar(&s.namespace, "namespace", getenv("VAULT_NAMESPACE"), "the namespace of the keys; by default VAULT_NAMESPACE")
			flags.StringVar(&s.authorities, "authorities", getenv("VAULT_CACERT"), "a PEM `file` with the certificate authorities for Vault's certificate; by default VAULT_CACERT, or the system's")
			return func(context.Context) (program.Custodian, error) { return connect(s) }
		},
	}
}
