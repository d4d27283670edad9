# Everything that a developer types. `make help` lists it.

GO      ?= go
BIN     := $(CURDIR)/bin
TOOLS   := $(CURDIR)/.tmp/tools
# Modules with a workspace of their own: no other build asks for what only they link.
EXTENSIONS = $(patsubst %/go.work,%,$(wildcard ext/*/go.work))
# -race needs a C compiler; RACE=-race is what CI sets where there is one.
RACE    ?=
# How long a package's tests may take. Go's 10 minutes are too few for a slow machine.
TESTTIME ?= 30m
# TAGS=instruments adds the tests that CI runs once: the torture's short form, threads in all kinds of repositories, and the examples.
TAGS    ?=
# The packages whose tests try a sample of thousands of cases (util/sampletest); make torture tries them all.
SAMPLED ?= $(addprefix ./,cas/bundle cas/fsck cas/fsstore cas/heads/fileheads)
# The packages whose goroutines share memory, except those that take minutes: what CI runs with the race detector.
RACED   ?= $(addprefix ./,cas cas/internal/... engine/agentproc engine/discover engine/locker/... engine/notify \
	engine/remotes remote/storeremote util/log util/plaintext util/proc util/secret \
	util/terminal utilagent/acp utilagent/agentkit utilagent/box/proxy utilagent/cliagent utilagent/cliagent/output utilagent/internal/... utilagent/llm \
	utilagent/react utilagent/tools cmd/uwf-web cmd/uwf/internal/app cmd/uwf/internal/doctor cmd/uwf/internal/setup)
STATICCHECK   := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
NFPM          := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.0
HUGO          := github.com/gohugoio/hugo@v0.160.0
TEMPORAL      := $(addprefix go.temporal.io/server/cmd/,$(addsuffix @v1.32.1,server tools/sql))
AXE           := axe-core@4.10.3
ACTIONLINT    := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build every command into bin/ (static: it starts faster)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='./cmd/uwf-box=-s -w' -o $(BIN)/ $(addprefix ./,$(patsubst %/main.go,%,$(wildcard cmd/*/main.go)))
	@# In a directory of their own: an agent named echo on PATH would replace the shell's.
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/examples/uwf-echo ./examples/agents/echo

.PHONY: demo
demo: build ## three roles fix a real bug in a little Go project; no key, no network (KEEP=1 keeps what they made)
	@$(GO) run ./examples/demo -bin $(BIN) $(if $(KEEP),-keep)

.PHONY: test
test: ## run the tests of a working day, with fakes for other people's agents; TAGS=instruments adds what CI runs, too
	$(GO) test $(RACE) -tags '$(TAGS)' -timeout $(TESTTIME) -shuffle=on work

.PHONY: test-times
test-times: ## run the same tests, none from the cache, and list the packages that take longest
	$(GO) test -tags '$(TAGS)' -count=1 -timeout $(TESTTIME) work | awk '{ print } /^ok/ { print $$3, $$2 | "sort -rn | head" }'

.PHONY: test-endpoint
test-endpoint: ## run client, loop and agents against a fake endpoint that others wrote (npm installs it)
	$(GO) test -tags endpoint -p 1 -count=1 -v -run TestForeign ./utilagent/react ./utilagent/builtin

.PHONY: test-agents
test-agents: ## run the adapters with the newest real programs (npm installs them) against a model that plays a script
	$(GO) vet -tags agents ./internal/agentstest
	$(GO) test -tags agents -count=1 -timeout 60m -parallel 2 ./internal/agentstest -v

.PHONY: test-web
test-web: ## look at the pages of uwf web in Chromium (Debian's package is installed where it may be, axe-core by npm); pictures in .tmp/web
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || apt-get install -y chromium || { echo "there is no chromium: the pages cannot be looked at"; exit 1; }
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix .tmp/axe $(AXE)
	$(GO) vet -tags browser ./internal/webtest
	$(GO) test -tags browser -count=1 -timeout 40m ./internal/webtest -v

.PHONY: web-pictures
web-pictures: ## take the pictures of uwf web that README.md and docs/web.md show, in Chromium
	UWF_WEBTEST_PICTURES=$(CURDIR)/docs/images $(GO) test -tags browser -count=1 -run TestPictures ./internal/webtest

.PHONY: test-postgres
test-postgres: ## run ext/postgres against a real Postgres (Debian's package is installed where it may be)
	RACE=$(RACE) ext/postgres/test.sh

.PHONY: test-temporal
test-temporal: workers ## run ext/temporal against a real Temporal server (built from its module the first time, for minutes)
	$(GO) -C ext/temporal vet -tags temporal ./...
	$(GO) -C ext/temporal test $(RACE) -tags temporal -p 1 -count=1 -timeout 60m ./...

# What workers are, and the servers that they work with.
.PHONY: workers
workers: build
	@test -x $(TOOLS)/temporal-sql-tool || $(MAKE) $(TOOLS)/temporal-sql-tool || { printf '\033[1;31m%s\033[0m\n' "NOT RUN: what needs a real Temporal server. There is none here, and it could not be built." >&2; exit 1; }
	@ext/postgres/server.sh
	$(GO) -C ext/temporal build -trimpath -o $(BIN)/ ./uwf-temporal
	$(GO) -C ext/postgres build -trimpath -o $(BIN)/ ./uwf-remote-postgres

# Its hundreds of modules are in no go.mod of ours.
$(TOOLS)/temporal-sql-tool:
	CGO_ENABLED=0 GOBIN=$(TOOLS)/temporal GOFLAGS=-trimpath $(GO) install -ldflags='-s -w' $(TEMPORAL)
	mv $(TOOLS)/temporal/server $(TOOLS)/temporal-server
	mv $(TOOLS)/temporal/sql $@

.PHONY: test-ssh
test-ssh: ## the suite for remotes through a real ssh and sshd (Debian's package is installed where it may be); make test has a fake ssh
	@test -x /usr/sbin/sshd || apt-get install -y openssh-server || { echo "there is no sshd: uwf-remote-ssh was tried with a fake ssh only"; exit 1; }
	$(GO) vet -tags sshd ./cmd/uwf-remote-ssh
	$(GO) test -tags sshd -count=1 -run TestRealSSH ./cmd/uwf-remote-ssh

.PHONY: race
race: ## run the tests of the packages that share memory with the race detector (needs a C compiler); RACED=work for all
	GORACE=atexit_sleep_ms=0 $(GO) test -race -timeout $(TESTTIME) -shuffle=on $(RACED)

.PHONY: fuzz
fuzz: ## fuzz every parser and file format for FUZZTIME each (default 20s)
	@GO="$(GO)" internal/release/fuzz.sh $(or $(FUZZTIME),20s)

.PHONY: bench
bench: build ## measure what is promised about speed and memory; BENCH=-full for the large fixtures, -machines for real servers
ifeq ($(BENCH),-machines)
	@ext/postgres/test.sh -run - -bench Machines -benchtime 200x
	@$(MAKE) workers
	@$(GO) -C ext/temporal test -tags temporal -run - -bench Machines -benchtime 3x -timeout 60m ./uwf-temporal
else
	@$(GO) test -run - -bench Promise -benchtime 2s -timeout 0 ./internal/bench -bin $(BIN) $(BENCH)
	@$(GO) test -run - -bench OwnTime -benchtime 3x ./utilagent/builtin
endif

.PHONY: torture
torture: build ## kill, starve, deceive and attack every command for TORTURETIME (default 10m); SEED repeats a run
	$(GO) build -o $(CURDIR)/.tmp/torture ./internal/torture
	@$(CURDIR)/.tmp/torture -bin $(BIN) -time $(or $(TORTURETIME),10m) $(addprefix -seed ,$(SEED))
	@$(GO) test -tags exhaustive -timeout 0 $(SAMPLED)
	@$(GO) test -tags instruments -v -timeout 0 -run 'TestHistories|TestKilledCoding' ./internal/torture -bin $(BIN) -long $(or $(TORTURETIME),10m) $(addprefix -seed ,$(SEED))
	@$(GO) test -timeout 0 -run TestProgram ./engine/internal/decide/decidetest -uwf $(BIN)/uwf -torture $(CURDIR)/.tmp/torture -long $(or $(TORTURETIME),10m) $(addprefix -seed ,$(SEED))

.PHONY: mutants
mutants: ## break promises in a copy of the sources, one at a time: the torturer must notice (half an hour)
	@internal/torture/mutants/run.sh

.PHONY: check
check: fmt vet staticcheck cross ## every static check that needs no long build

.PHONY: fmt
fmt:
	@out=$$(git ls-files '*.go' | xargs gofmt -s -l); test -z "$$out" || { echo "gofmt -s would change:"; echo "$$out"; exit 1; }

.PHONY: vet
vet:
	$(GO) vet -tags instruments work
	for m in $(EXTENSIONS); do $(GO) -C $$m vet -tags $${m#ext/} ./... || exit 1; done

.PHONY: staticcheck
staticcheck: $(TOOLS)/staticcheck
	for m in $$($(GO) list -m -f '{{.Dir}}') $(EXTENSIONS); do (cd $$m && $(TOOLS)/staticcheck -tags instruments ./...) || exit 1; done

$(TOOLS)/staticcheck: Makefile
	GOBIN=$(TOOLS) GOFLAGS= $(GO) install $(STATICCHECK)
	@touch $@

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## run golangci-lint with the repository's configuration (builds it the first time)
	for m in $$($(GO) list -m -f '{{.Dir}}') $(EXTENSIONS); do (cd $$m && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...) || exit 1; done

$(TOOLS)/golangci-lint: Makefile
	GOBIN=$(TOOLS) GOFLAGS= $(GO) install $(GOLANGCI_LINT)
	@touch $@

.PHONY: cross
cross: ## compile for the systems that cannot be tried here
	for os in darwin windows; do GOOS=$$os CGO_ENABLED=0 $(GO) vet work || exit 1; \
		for m in $(EXTENSIONS); do GOOS=$$os CGO_ENABLED=0 $(GO) -C $$m vet ./... || exit 1; done; done

.PHONY: tidy
tidy: ## go mod tidy in every module, siblings served from the tree
	$(GO) run ./internal/release tidy

.PHONY: tidy-check
tidy-check: ## the same, and fail if that changes a file
	$(GO) run ./internal/release tidy -check

.PHONY: install-check
install-check: ## go install every command from a proxy made of the tree
	$(GO) run ./internal/release install-check

.PHONY: pictures
pictures: build ## draw docs/images anew, from a run of the demo, and measure the examples
	docs/images/make.sh $(BIN)
	$(GO) test -tags instruments ./examples/demo -run TestExamples -count=1 -update

.PHONY: archives
archives: $(TOOLS)/nfpm ## what people install from, in dist/: archives for six systems, Debian packages, formula, checksums (VERSION=v0.2.0)
	$(GO) run ./internal/release archives -o $(CURDIR)/dist -nfpm $(TOOLS)/nfpm $(addprefix -version ,$(VERSION))

$(TOOLS)/nfpm: Makefile
	GOBIN=$(TOOLS) GOFLAGS= $(GO) install $(NFPM)
	@touch $@

.PHONY: site
site: $(TOOLS)/hugo ## render README and docs as a static site, in dist/site
	$(TOOLS)/hugo --config packaging/site/hugo.toml --destination $(CURDIR)/dist/site --cleanDestinationDir --noBuildLock

$(TOOLS)/hugo: Makefile
	CGO_ENABLED=0 GOBIN=$(TOOLS) GOFLAGS= $(GO) install $(HUGO)
	@touch $@

.PHONY: actions
actions: $(TOOLS)/actionlint ## check the GitHub workflows
	$(TOOLS)/actionlint

$(TOOLS)/actionlint: Makefile
	GOBIN=$(TOOLS) GOFLAGS= $(GO) install $(ACTIONLINT)
	@touch $@

.PHONY: release
release: ## commit and tag VERSION=v0.2.0; it pushes nothing
	$(GO) run ./internal/release release -version "$(VERSION)"

.PHONY: test-install
test-install: $(TOOLS)/nfpm ## install what make archives makes for this system, as a user would: install.sh, Debian package, npm, container file
	@ways='install.sh|container'; \
	can() { if "$$@" >/dev/null 2>&1; then ways="$$ways|$$way"; else printf '\033[1;31mNOT RUN: %s: %s fails\033[0m\n' "$$way" "$$*"; fi; }; \
	way=deb; can dpkg --version; way=npm; can npm --version; way=image; can docker info; \
	$(GO) test -tags install -count=1 -v -run "TestInstalled/^($$ways)$$" ./internal/release

.PHONY: size
size: ## count the lines of Go without tests: core, leaf modules, kits, instruments; the widest and the largest
	@$(GO) run ./internal/release size

.PHONY: clean
clean: ## remove what make made
	rm -rf $(BIN) $(CURDIR)/.tmp $(CURDIR)/dist
