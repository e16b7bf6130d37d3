// Command aws serves keys of the AWS Key Management Service to a relayer, by
// Web3Signer's HTTP API. See docs/howto/signers.md.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/tempo-watchtower/watchtower/cmd/signers/program"
)

func main() { os.Exit(program.Main(signer())) }

// signer is the program. Region, credentials and endpoint come from the sources of AWS's own
// programs: the environment, a profile's files, the machine.
func signer() program.Program {
	return program.Program{
		Name: "signer-aws",
		Keys: "a key's ARN or id",
		Service: func(*flag.FlagSet) program.Open {
			return func(ctx context.Context) (program.Custodian, error) { return connect(ctx) }
		},
	}
}
