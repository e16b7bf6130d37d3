#!/bin/sh
# Build the folder that holds the service against an EventStoreDB where there is no Go:
# deploy/contract.sh FOLDER. All programs but anvil are static.
set -eu
cd "$(dirname "$0")/.."
folder=$1
rm -rf "$folder"
mkdir -p "$folder/programs"
export CGO_ENABLED=0

go test -c -trimpath -o "$folder/contract.test" ./infra/eventstoredb
for half in watchtower relayer; do
	go test -c -trimpath -o "$folder/$half.test" "./cmd/$half"
done
go build -trimpath -tags crash -o "$folder/programs/" ./cmd/watchtower ./cmd/relayer
go build -trimpath -o "$folder/programs/" ./cmd/esdouble
go build -C proof/promql -trimpath -o "$(cd "$folder" && pwd)/programs/" .

# The files that tests read, at their places in the tree.
for path in cmd/watchtower/testdata cmd/relayer/testdata docs/reference/observability.md deploy/prometheus; do
	mkdir -p "$folder/tree/$(dirname "$path")"
	cp -R "$path" "$folder/tree/$(dirname "$path")/"
done
mkdir -p "$folder/tree/infra/eventstoredb"
cp deploy/contract/run docs/howto/eventstoredb.md LICENSE NOTICE "$folder/"

anvil=${WATCHTOWER_TEST_ANVIL:-}
for place in .tools/anvil/node_modules/@foundry-rs/anvil-*/bin/anvil "$(command -v anvil || true)"; do
	if [ -z "$anvil" ] && [ -x "$place" ]; then anvil=$place; fi
done
if [ -n "$anvil" ]; then
	cp "$anvil" "$folder/programs/anvil"
else
	echo "contract: no anvil was found, neither in .tools (make test fetches it) nor in PATH: name one in WATCHTOWER_TEST_ANVIL where the folder is run" >&2
fi
echo "WATCHTOWER_TEST_ESDB=esdb://… WATCHTOWER_TEST_POSTGRES=postgres://… $folder/run [contract|process|faults|all] [minutes]"
