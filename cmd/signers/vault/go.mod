module github.com/tempo-watchtower/watchtower/cmd/signers/vault

go 1.26.0

require (
	github.com/tempo-watchtower/watchtower v0.0.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/ProjectZKM/Ziren/crates/go-runtime/zkvm_runtime v0.0.0-20251001021608-1fe7b43fc4d6 // indirect
	github.com/decred/dcrd/dcrec/secp256k1/v4 v4.0.1 // indirect
	github.com/ethereum/go-ethereum v1.17.10 // indirect
	github.com/holiman/uint256 v1.3.2 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

// It is built in this tree only: what the signers have in common lies in the main module.
replace github.com/tempo-watchtower/watchtower => ../../..
