# `make` alone lists the targets.

# Time that `make fuzz` gives to each fuzz target.
T ?= 10s
# Arguments of `make run` and `make bench`.
ARGS ?=
# Seeds that `make sim` simulates, from SEED on.
N    ?= 1000
SEED ?= 1
# Stores that `make e2e` tries: whole, most of it, or a sample.
E2E    ?= disk redis:most redis-cluster:sample redis-sentinel:sample
# Stores that `make interop` tries, and a regular expression of its rows.
STORES ?= disk redis
ROWS   ?=

# Modules of their own: the client tests, so that muster does not depend on other Kafka
# clients, and the benchmark, which sees of muster what any program sees.
CLIENTS := interop/go
BENCH   := bench
OLD     := interop/old
RELEASE := tools/release
LINTER  := bin/golangci-lint

# Packages without goroutines, by rule (internal/tidy), and those whose own tests start
# none, or only those of tests and tools: the race detector has nothing to find in them.
# The tests of cmd/muster run all commands under it.
PURE   := audit auth coordinator/pump group group/assignor group/classic group/consumer group/kind group/modern group/schema group/subscription journal machine migration quota share/state share/window txn watch/explain watch/history watch/lag watch/list words
QUIET  := $(addprefix cmd/muster/internal/,cli serve top txns) internal/sim internal/sim/exact internal/sim/seeds internal/sim/shares internal/sim/shell internal/harness internal/tidy interop/matrix scripts/gate
RACED   = $(filter-out $(PURE:%=muster/internal/%) $(QUIET:%=muster/%),$(shell go list ./...))

# How tests run: most wait for something most of the time, so more run than there are
# cores. What go vet finds, golangci-lint has found. Clients, which have sessions that end,
# come before what computes. Without symbols binaries are linked in two thirds of the time.
GATE := nice -n 5 go run ./scripts/gate -vet=off -ldflags='-s -w' -shuffle=on -p 6 -parallel 6 -timeout 25m

# What make test makes beside the tests of packages and the client tests.
BESIDE ?=

# Go stamps the commit into the binary, and refuses to build where Git cannot
# tell it: no commit yet, or a checkout that belongs to another user.
BUILDFLAGS := $(if $(shell git rev-parse -q --verify HEAD 2>/dev/null),,-buildvcs=false)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run build test lint fmt unit race fuzz sim e2e copies cuts reconciles zombies interop bench bench-kafka release packages generate ci clean fresh setup nightly matrix

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' Makefile

run: build ## Build the broker and run it on 127.0.0.1:9092 with its data in ./data
	bin/muster serve $(ARGS)

build: ## Build bin/muster
	go build $(BUILDFLAGS) -o bin/muster ./cmd/muster

test: setup ## Run everything a change must pass: lint, all tests, those of packages with goroutines under the race detector, real clients
	@scripts/lanes "lint unit race" e2e $(BESIDE)

# The other modules are not asked whether they are tidy: Go would first download
# hundreds of modules that only tests of their dependencies need.
lint: $(LINTER) ## Run golangci-lint (the first time builds it, which takes minutes)
	@changes=$$(go mod tidy -diff 2>&1) || { echo "$$changes"; echo "go.mod is not tidy: run go mod tidy"; exit 1; }
	$(LINTER) run ./...
	@for module in $(CLIENTS) $(BENCH); do (cd $$module && $(CURDIR)/$(LINTER) run ./...) || exit 1; done
	@if [ -f $(OLD)/go.mod ]; then cd $(OLD) && go vet ./...; fi

fmt: $(LINTER) ## Format the Go sources as lint wants them
	$(LINTER) fmt
	@for module in $(CLIENTS) $(BENCH) $(RELEASE); do (cd $$module && $(CURDIR)/$(LINTER) fmt) || exit 1; done

unit: ## Run the tests of the main module, fuzz corpora included, at their full depth, and a sample of the benchmark's
	$(GATE) ./...
	go -C $(BENCH) test -short ./...

race: SAMPLED ?= -short
race: ## Run the tests of packages with goroutines with the race detector, samples of those that try all cases
	$(GATE) -race $(SAMPLED) $(RACED)

fuzz: ## Run every fuzz target for T (make fuzz T=1m)
	@scripts/fuzz $(T)

sim: ## Simulate groups, and transactions across partitions (make sim N=100000, or SEED=17 N=1 for one seed)
	go test -p 1 ./internal/sim ./internal/sim/exact ./internal/sim/shares -count=1 -timeout 0 -run TestSimulation -v -args -seed $(SEED) -n $(N)

e2e: setup ## Run real Kafka clients against the broker, on disk and on each kind of Redis
	@scripts/e2e $(E2E)

copies: N = 200
copies: E2E = disk redis
copies: setup ## Copy in transactions while brokers and Redis primaries are killed (make copies N=200 E2E="disk redis", or SEED=17 N=3 for one round)
	@for store in $(E2E); do \
		echo "copies on $$store" && \
		(cd $(CLIENTS) && INTEROP_STORE=$$store go test . -count=1 -timeout 0 -run TestCopiesSurviveKills -v -args -copies $(N) -seed $(SEED)) || exit 1; \
	done

cuts: N = 200
cuts: ## Cut the end off Redis' append-only file under a fleet, in the middle of transactions, and at each byte of some (make cuts N=200 SEED=1)
	go test ./internal/broker -count=1 -timeout 0 -run TestCutsTearNoTransaction -v -args -cuts $(N) -cut-seed $(SEED)
	go test ./internal/store/redis -count=1 -timeout 0 -run TestAFileThatIsCutHoldsAPrefix -args -cut-step 1

model: N = 2000
model: ## Compare logs of layout indexed with a model of them, at random (make model N=2000, or SEED=17 N=1 for one seed)
	go test ./internal/store/redis -count=1 -timeout 0 -run TestIndexedLogIsAsItsModel -args -seed $(SEED) -n $(N)

reconciles: N = 100
reconciles: E2E = disk redis
reconciles: setup ## Kill brokers while consumer groups reconcile (make reconciles N=100 E2E="disk redis", or SEED=17 N=5 for one group)
	@for store in $(E2E); do \
		echo "reconciliations on $$store" && \
		(cd $(CLIENTS) && INTEROP_STORE=$$store go test . -count=1 -timeout 0 -run TestReconciliationsSurviveKills -v -args -reconciles $(N) -reconcile-seed $(SEED)) || exit 1; \
	done

zombies: N = 100
zombies: ## Freeze brokers beyond their lease, in the middle of appends (make zombies N=100 SEED=1)
	go test ./cmd/muster -count=1 -timeout 0 -run TestZombiesWriteNothing -v -args -zombies $(N) -zombie-seed $(SEED)

interop: build ## Run clients of every language against the broker and write docs/clients.md (make interop STORES=disk ROWS=Java)
	@scripts/setup interop
	go run ./interop/matrix -stores "$(STORES)" -rows "$(ROWS)" -write docs/clients.md

# Each client on one of the stores, the newest Java client on both; make nightly tries all
# on both. ($$$$, since two makes read it.)
matrix: # Run a sample of make interop.
	@$(MAKE) interop STORES=disk ROWS='clients [234]|logged|Connect|aiokafka|platformatic|sarama|Go kafka-go'
	@$(MAKE) interop STORES=redis ROWS='clients 4|tools$$$$|Streams$$$$|confluent-kafka$$$$|kafka-python$$$$|KafkaJS$$$$|franz-go|confluent-kafka-go'

bench: ## Run the benchmark (make bench ARGS=-h lists its flags)
	go -C $(BENCH) run . $(ARGS)

bench-kafka: ## Run the benchmark beside Apache Kafka, and write its part of docs/benchmarks.md (needs Java and Maven)
	go -C $(BENCH) build $(BUILDFLAGS) -o ../bin/bench .
	@exec bin/bench kafka -write docs/benchmarks.md $(ARGS)

release: ## Make everything that is published of a version in dist/ (make release VERSION=v0.1.0, TARGETS=linux/amd64 for one)
	go -C $(RELEASE) run . -version "$(VERSION)" $(if $(TARGETS),-targets "$(TARGETS)") $(if $(WITHOUT),-without "$(WITHOUT)")

packages: $(LINTER) ## Test the packages for Python, Node.js, the JVM, Go and systems as their users install them, and what makes them
	cd $(RELEASE) && $(CURDIR)/$(LINTER) run ./...
	go -C $(RELEASE) test ./...
	$(MAKE) release VERSION=v0.0.1 TARGETS="$$(go env GOOS)/$$(go env GOARCH)"
	packages/test dist
	@if [ "$$(uname -s) $$(id -u)" = "Linux 0" ]; then packages/system dist; else echo "packages/system needs Linux and root: left out"; fi

generate: ## Regenerate what is generated from the source
	go generate ./...

nightly: N = 100000
nightly: setup ## Run what make test takes samples of, whole: all stores, all clients, 100,000 seeds, fuzzing, kills and cuts (hours)
	@for os in darwin windows; do for module in . $(BENCH); do (cd $$module && GOOS=$$os go vet ./...) || exit 1; done; done
	$(MAKE) e2e E2E="disk redis redis-cluster redis-sentinel"
	$(MAKE) race RACED=./... SAMPLED="-timeout 3h"
	go -C $(BENCH) test -count=1 ./...
	$(MAKE) interop STORES="disk redis"
	$(MAKE) sim N=$(N)
	$(MAKE) fuzz T=1m
	$(MAKE) cuts model copies reconciles zombies packages

ci: setup fresh test fuzz ## Run test and a short fuzz, and check that generated files are up to date

clean: ## Remove what was built (not ./data)
	rm -rf bin dist

fresh: # Fail if `make generate` changes anything.
	@state() { git status --porcelain && git diff; }; \
	before=$$(state) && $(MAKE) -s generate && after=$$(state) && \
	if [ "$$before" != "$$after" ]; then \
		git status --short; echo "generated files were not up to date: commit what make generate changed"; exit 1; \
	fi

setup: # Install what the tests need beyond Go, gcc and make; says nothing when it is there.
	@scripts/setup

$(LINTER): tools/go.mod tools/go.sum
	cd tools && go build -buildvcs=false -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@
