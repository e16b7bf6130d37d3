// Command gcp serves keys of Google Cloud's Key Management Service to a relayer, by
// Web3Signer's HTTP API. See docs/howto/signers.md.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program"
)

// endpoint is the service's URL.
const endpoint = "https://cloudkms.googleapis.com"

func main() { os.Exit(program.Main(signer())) }

// signer is the program. Credentials come from the sources of Google's own programs: the file
// named by GOOGLE_APPLICATION_CREDENTIALS, gcloud, the machine.
func signer() program.Program {
	return program.Program{
		Name: "signer-gcp",
		Keys: "a key version's name, projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/1",
		Service: func(flags *flag.FlagSet) program.Open {
			at := flags.String("endpoint", endpoint, "the URL of the service: https, or http on this machine")
			return func(context.Context) (program.Custodian, error) { return connect(*at) }
		},
	}
}
