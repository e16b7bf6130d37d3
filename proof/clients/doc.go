// Package clients proves the clients of both services. The Go client, the TypeScript client as npm
// packs it, and the command line run one scenario, testdata/scenario.yaml, against the real
// programs, over connections that fail. The test counts the operations of the contracts that each
// client has carried out, and fails if one is missing.
package clients
