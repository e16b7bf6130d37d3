# Two commands matter: make run shows it working, make test proves it.
# Everything needs Go 1.26 and nothing else; npm, if it is there, brings anvil.

.DEFAULT_GOAL := help
.PHONY: help run test test-quick chaos chaos-ci release check layering lint bench build man signers contract contract-fuzz fuzz mutations simulate mutants vulncheck digests clean

# Flags and packages for go test: make test ARGS='-run TestFrozen ./domain/delivery/tx'
ARGS ?=
# What has dependencies that nobody else is to have. cmd/modules_test.go tests them.
SIGNERS := $(patsubst %/go.mod,%,$(wildcard cmd/signers/*/go.mod))
MODULES := $(SIGNERS) $(patsubst %/go.mod,%,$(wildcard proof/*/go.mod proof/*/*/go.mod))
# How long each fuzz target runs.
FUZZTIME ?= 30s
# How long make contract-fuzz runs each contract.
DURATION ?= 30m

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## the service, a chain and three transactions on their way (Ctrl-C ends it)
	go run ./cmd/devnet --demo

test: ## every test, with private Postgres, Redis and anvil (ARGS='-run TestFrozen ./domain/delivery/tx')
	go run ./cmd/testrun $(ARGS)

# What make test-quick runs: packages that start no process and no node, with the embedded store. It leaves
# out packages whose tests wait for seconds or need the whole program, and tests with many rounds or rows.
QUICK := ./eventlog/... ./domain/... ./migrations ./commands/... ./projections/... ./api/... \
	./infra/archive ./infra/chain/chaintest ./infra/chain/ethereum ./infra/chain/rlp ./infra/chain/tempo \
	./infra/embedded ./infra/feed ./infra/keys ./infra/recent ./infra/storetest/... ./infra/webhook \
	./proof/promises/... ./cmd/program/config ./cmd/relayer/settings ./cmd/relayer/doctor ./cmd/relayer/cli
QUICK_SKIP := '^Test(Storms|Thousand|TenThousand|DiesAnywhere|LongReader|RebuildUnderLoad|LargeGroup|EnvelopeInputs|SubmitInputs|OthersDelay|WaitsLonger|Untaken|OnlyAnEnd|AccountWithoutFunds)'

test-quick: ## unit tests, and contracts on the embedded store, in a minute and a half; results of unchanged packages are reused
	GOGC=400 go test -vet=off -ldflags=-w -skip $(QUICK_SKIP) $(QUICK)

check: ## format, vet, lint, layers, then every test
	@diff=$$(gofmt -d $$(git ls-files '*.go')); if [ -n "$$diff" ]; then printf '%s\n' "$$diff"; exit 1; fi
	go vet ./...
	$(MAKE) --no-print-directory lint layering test

chaos: ## every process test, with disks, networks and clocks that fail, and long histories; as root (ARGS='-run TestPowerCut')
	WATCHTOWER_TEST_TIMED=1 WATCHTOWER_TEST_RACE=1 go run ./cmd/testrun -tags chaos -timeout 60m $(ARGS) ./cmd/watchtower ./cmd/relayer ./infra/postgres ./infra/eventstoredb
	go test -count=1 -tags chaos -timeout 60m $(ARGS) ./examples/ledger # a million events take too long under the race detector

# The proofs of make chaos that CI runs: durability, failover, upgrades and clocks, in about ten minutes on
# two cores. docs/proof/reliability.md says for each row which suite runs its proofs.
CHAOS_CI := '^Test(PowerCut|PowerCutOfLyingDisk|DiskFull|FailingDisk|StandbyPromoted|RollingUpgrade|UpgradeInPlace)$$'

chaos-ci: ## those of the chaos tests that CI runs; as root
	go run ./cmd/testrun -tags chaos -timeout 25m -run $(CHAOS_CI) ./cmd/watchtower

# What a release needs beside a green CI: every proof, in some hours.
release: check vulncheck chaos mutations ## before a release: every test, then hours of fuzzing and simulation; as root
	$(MAKE) --no-print-directory fuzz FUZZTIME=2m
	$(MAKE) --no-print-directory simulate HOURS=100 ARGS='-each 1 -require'
	$(MAKE) --no-print-directory simulate RELAY=1 HOURS=50 ARGS='-each 0.5 -require'
	$(MAKE) --no-print-directory mutants

layering: ## who may import whom, and what else holds for every file
	go test -count=1 ./cmd

lint: ## golangci-lint v2.15, where it is installed
	@if command -v golangci-lint >/dev/null; then \
		golangci-lint run && for module in $(MODULES); do (cd "$$module" && golangci-lint run) || exit 1; done; \
	else echo "lint: golangci-lint v2.15 is not in PATH: nothing was linted"; fi

bench: ## measure throughput and latency on Postgres and embedded
	WATCHTOWER_TEST_POSTGRES_SETTINGS=shared_buffers=2GB,max_wal_size=8GB go run ./cmd/testrun -- go run ./proof/bench

build: ## the programs, into bin/
	@mkdir -p bin
	go build -trimpath -o bin/ ./cmd/...

man: ## man pages of watchtower and relayer, into bin/man
	go run ./cmd/watchtower manual man bin/man/man1
	go run ./cmd/relayer manual man bin/man/man1

signers: ## the signers for AWS KMS, GCP KMS and Vault (docs/howto/signers.md), into bin/
	@mkdir -p bin
	@for module in $(SIGNERS); do \
		go build -C "$$module" -trimpath -o "$(CURDIR)/bin/signer-$${module##*/}" . || exit 1; \
	done

contract: ## bin/eventstoredb-contract/: tests against a real EventStoreDB or its cluster, for machines without Go
	@sh deploy/contract.sh bin/eventstoredb-contract

contract-fuzz: ## requests made from the contracts of all three APIs, for DURATION (30m) each, against running handlers
	WATCHTOWER_TEST_CONTRACT=$(DURATION) go test -count=1 -timeout 0 -v -run 'ContractFuzz$$' ./api/delivery ./api/jsonrpc ./api/relay

fuzz: ## each fuzz target for FUZZTIME (30s)
	@go list -f '{{.ImportPath}}' ./... | while read -r package; do \
		for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || exit 1; \
		done; \
	done

mutations: ## a million damaged transactions for each decoder, with what they cost
	go test -tags chaos -count=1 -v -timeout 60m -run '^TestMutations$$' ./infra/chain/tempo ./infra/chain/ethereum

# A world of one seed, or many: make simulate SEED=17 HOURS=2, make simulate HOURS=200.
# RELAY=1: with a relay half. CLUSTER=1: with the log in an EventStoreDB cluster. CALM=1: without hostile clients and pages.
simulate: ## made-up worlds with hostile clients: HOURS (20) simulated in all, or SEED's world of HOURS (2); RELAY=1 with the relay, CLUSTER=1 with an EventStoreDB cluster
	go run ./proof/simulation/worlds $(if $(RELAY),-relay) $(if $(CLUSTER),-cluster) $(if $(CALM),,-hostile -twins 5) $(if $(SEED),-seed $(SEED) -worlds 1 -each $(or $(HOURS),2),-hours $(or $(HOURS),20)) $(ARGS)

mutants: ## defects on purpose, one at a time: how many worlds find each (ARGS='-only cancel -seeds 40')
	go run ./cmd/testrun -- go run ./proof/mutants $(ARGS)

# vuln.go.dev has the database. A mirror of it: VULNDB=file:///path or VULNDB=https://host.
VULNDB ?= https://vuln.go.dev

vulncheck: ## known vulnerabilities that our code reaches, by govulncheck (docs/howto/security.md)
	@sh deploy/vulncheck.sh '$(VULNDB)' . $(MODULES)

digests: ## deploy/images.lock: the digest of every image that docker-compose.yml and the Dockerfile name
	@sh deploy/digests.sh

clean: ## what was built and fetched: bin/ and .tools/
	rm -rf bin .tools
