# findings-operator. `make help` lists the targets.
SHELL := /usr/bin/env bash -o pipefail
.DEFAULT_GOAL := help

# Pinned in a module of their own, so that their dependencies never decide ours. The go
# command builds each at its first use and keeps it in its cache.
TOOL := go tool -modfile=$(CURDIR)/hack/tools/go.mod
# The pages of the console are made by a generator of its own module.
TEMPL := go tool -modfile=$(CURDIR)/hack/templ/go.mod templ
GENERATED := api/v1alpha1/zz_generated.deepcopy.go apiserver/openapi/types.gen.go client/client.gen.go apiserver/handlers/contract.gen.go config/crd/bases \
  $(wildcard apiserver/console/*/*_templ.go) \
  charts/findings-operator/templates/crds charts/findings-operator/templates/rbac charts/findings-operator/templates/admission
# Our code, in modules that are tested, vetted and linted. Those after the first do not affect the service's dependencies.
OURS := . bench test/faults test/alerts
MODULES := $(OURS) hack/tools hack/vacuum hack/templ hack/controlplane hack/helm hack/image hack/node/coredns hack/licenses hack/kine hack/release
# Ends a run of tests with its count.
PASSED := --post-run-command $(CURDIR)/hack/count.sh
# CHECK verifies a target's prerequisites before anything is built. FIRST then builds its dependencies.
CHECK = @hack/check.sh $@
FIRST = @$(MAKE) --no-print-directory
# The image's tag: the version that the chart asks for.
VERSION ?= $(shell sed -n 's/^appVersion: //p' charts/findings-operator/Chart.yaml)
# How many packages are tested at the same time. Each may start a control plane and other programs, and waits for them:
# those that run the product as a process of its own need half a core each.
TEST_JOBS ?= 3
# How long one package may take.
TEST_TIMEOUT ?= 20m

# Tests run in their packages' folders.
ifneq ($(FINDINGS_SARIF_CORPUS),)
export FINDINGS_SARIF_CORPUS := $(abspath $(FINDINGS_SARIF_CORPUS))
endif

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"} /^[a-zA-Z0-9_-]+:.*?##/ {printf "  \033[36m%-15s\033[0m %s\n", $$1, $$2} /^##@/ {printf "\n%s\n", substr($$0, 5)}' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run everything on this machine until Ctrl-C (PORT=8080 RUN_DIR=.run SAMPLES=true CONTROLLER_FLAGS=).
	$(CHECK)
	$(FIRST) controlplane build
	@exec bin/findings-local

##@ Development

# With the flags of the image and the control plane, so that what they share is compiled once.
.PHONY: build
build: ## Build the binaries into bin/.
	$(CHECK)
	@mkdir -p bin
	@echo "build: compiling the operator (cold: 1 to 3 minutes, afterwards seconds) ..."
	@CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...
	@CGO_ENABLED=0 go build -trimpath -o bin/findings-local ./hack/local

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl into bin/k8s, once.
	$(CHECK)
	@hack/controlplane/build.sh

.PHONY: kine
kine: ## Build kine into bin/, once (cold: minutes).
	$(CHECK)
	@hack/kine/build.sh

.PHONY: helm
helm: ## Build helm and kubeconform into bin/, once.
	$(CHECK)
	@hack/helm/build.sh

.PHONY: generate
generate: ## Regenerate all generated code and manifests.
	$(CHECK)
	go tool controller-gen object paths=./api/...
	go tool controller-gen crd:allowDangerousTypes=false paths=./api/... output:crd:artifacts:config=config/crd/bases
	$(TOOL) oapi-codegen -config apiserver/openapi/config.yaml apiserver/openapi/openapi.yaml
	$(TOOL) oapi-codegen -config apiserver/openapi/server.yaml apiserver/openapi/openapi.yaml
	$(TOOL) oapi-codegen -config apiserver/openapi/client.yaml apiserver/openapi/openapi.yaml
	$(TEMPL) generate -path apiserver/console -log-level warn
	go run ./hack/chart

.PHONY: test
test: ## Run all tests, with the race detector for what runs in the test's process. Ends with a count.
	$(CHECK)
	$(FIRST) controlplane helm build
	@race=$$(hack/race.sh) && set -x && \
	$(TOOL) gotestsum --format=pkgname --raw-command -- env TEST_JOBS=$(TEST_JOBS) FINDINGS_BUILT=1 hack/test.sh $$race -timeout=$(TEST_TIMEOUT)

.PHONY: chart
chart: ## Pack the chart into bin/chart.
	$(CHECK)
	$(FIRST) helm
	@mkdir -p bin/chart
	bin/helm lint --strict charts/findings-operator
	bin/helm package charts/findings-operator --destination bin/chart

.PHONY: image
image: ## Build the image for amd64 and arm64 into bin/image, without an engine (cold: minutes for each).
	$(CHECK)
	@mkdir -p bin/image
	@cd hack/image && go build -o ../../bin/findings-image .
	@bin/findings-image --root . --out bin/image --version $(VERSION) \
	  --revision "$$(git rev-parse HEAD)" --created "$$(git log -1 --format=%ct)"

RELEASE_TOOL := go tool -modfile=$(CURDIR)/hack/release/go.mod

.PHONY: release
release: ## Build plugin and operator for all platforms into bin/release: checksums, SBOMs, krew manifest (cold: 20 minutes).
	$(CHECK)
	@echo "release: version $(VERSION), of $$(git rev-parse --short HEAD)"
	@# The tag need not exist yet. Without an address of the repository GoReleaser takes version and time from nowhere.
	@GORELEASER_CURRENT_TAG=v$(VERSION:v%=%) RELEASE_MODULE=$(CURDIR)/hack/release/go.mod GIT_CONFIG_COUNT=1 \
	  GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/appsec-dev/findings-operator \
	  $(RELEASE_TOOL) goreleaser release --snapshot --clean --config hack/release/goreleaser.yaml
	@hack/release/check.sh $(VERSION:v%=%)

# The folder of the node of `make e2e`, a new one or that of an earlier node; its content is removed at the start.
NODE_DIR ?= $(CURDIR)/.node

.PHONY: e2e
e2e: ## Run the chart's life in a real cluster of one node: install to uninstall (Linux, root, 15 minutes).
	$(CHECK)
	$(FIRST) helm controlplane
	@mkdir -p bin/e2e && (cd hack/image && go build -o ../../bin/findings-image .)
	@echo "e2e: building the image ..."
	@bin/findings-image --root . --out bin/e2e --architectures $$(go env GOARCH) --repository findings.test/findings-operator --version e2e
	@FINDINGS_IMAGE=$(CURDIR)/bin/e2e/findings-operator-$$(go env GOARCH).tar FINDINGS_NODE_DIR=$(NODE_DIR) \
	  hack/node/with.sh $(NODE_DIR) $(TOOL) gotestsum --format=testname \
	  $(PASSED) \
	  -- -tags=node -count=1 -timeout=120m ./test/node

# Flags of the comparison, such as BENCH="--short" or BENCH="--only reads"; see BENCH=--help.
BENCH ?=

.PHONY: bench
bench: ## Measure the service against alternatives, into docs/performance.md and docs/performance (hours; BENCH=--help).
	$(CHECK)
	$(FIRST) controlplane
	@mkdir -p bin && cd bench && go build -o ../bin/findings-compare ./compare
	@bin/findings-compare $(BENCH)

.PHONY: bench-go
bench-go: ## Run the Go benchmarks.
	$(CHECK)
	$(FIRST) controlplane
	@packages=$$(git ls-files '*_test.go' $(patsubst %,':!:%',$(filter-out .,$(MODULES))) | xargs grep -l '^func Benchmark' | xargs -n1 dirname | sort -u | sed 's|^|./|') && \
	go test -run='^$$' -bench=. -benchmem $$packages

.PHONY: faults
faults: ## Kill, freeze and cut off the service's processes under load, and count what is lost (half an hour).
	$(CHECK)
	$(FIRST) controlplane build
	@cd test/faults && $(TOOL) gotestsum --format=standard-verbose $(PASSED) -- -tags=faults -count=1 -timeout=60m .

.PHONY: attack
attack: ## Try every attack on a running service and on the console's pages, and count what passes (12 minutes).
	$(CHECK)
	$(FIRST) controlplane
	@$(TOOL) gotestsum --format=standard-verbose $(PASSED) -- -tags=attack -p=1 -count=1 -timeout=20m ./test/attack ./test/console

.PHONY: plane
plane: ## Set up a findings plane on PostgreSQL as in docs/findings-plane.md, and run the conformance suite against it.
	$(CHECK)
	$(FIRST) controlplane build kine
	@$(TOOL) gotestsum --format=testname $(PASSED) -- -tags=plane -count=1 -timeout=60m -run ThePage ./test/plane

.PHONY: etcdcost
etcdcost: ## Count what each step of a finding's life writes to etcd (3 minutes).
	$(CHECK)
	$(FIRST) controlplane build
	@$(TOOL) gotestsum --format=testname $(PASSED) -- -count=1 -timeout=20m ./test/etcdcost -operator $(CURDIR)/bin/findings-operator

.PHONY: pictures
pictures: ## Take pictures of the console of `make run`: the README's, and all into OUT (OUT=bin/pictures).
	$(CHECK)
	@go run ./hack/pictures -readme -out docs/pictures
	@go run ./hack/pictures -out $(or $(OUT),bin/pictures)

.PHONY: licenses
licenses: ## List the licences of all that is linked in; fails at one that is not permissive.
	$(CHECK)
	@cd hack/licenses && go build -o ../../bin/findings-licenses .
	@GOOS=linux GOARCH=amd64 bin/findings-licenses -out docs/licenses.md ./cmd/...

.PHONY: vulncheck
vulncheck: ## Look for known weaknesses of dependencies (needs the Go vulnerability database).
	$(CHECK)
	@$(TOOL) govulncheck ./... || { echo "vulncheck: a weakness is listed above, or the database was not reached"; exit 1; }

.PHONY: lint
lint: ## Run the linters (cold: building golangci-lint takes about 2 minutes).
	$(CHECK)
	@for module in $(OURS); do echo "lint: $$module"; \
	(cd $$module && $(TOOL) golangci-lint run --allow-parallel-runners --config $(CURDIR)/.golangci.yml) || exit 1; done

.PHONY: verify
verify: ## Check that nothing is stale, untidy or against the rules.
	$(CHECK)
	$(FIRST) verify-generated verify-modules verify-licenses verify-scripts verify-openapi verify-used verify-console lint
	@for module in $(OURS); do echo "vet: $$module"; (cd $$module && go vet ./...) || exit 1; done
	go vet -tags=node ./test/node
	cd test/faults && go vet -tags=faults .
	cd hack/image && go vet ./...
	go vet -tags=attack ./test/attack
	go vet -tags=plane ./test/plane

.PHONY: verify-generated
verify-generated: generate
	@stale=$$(git status --porcelain -- $(GENERATED)); if [ -n "$$stale" ]; then \
	  git --no-pager diff -- $(GENERATED); \
	  echo "verify: these generated files differ from what is committed; commit what \`make generate\` wrote:"; \
	  echo "$$stale"; exit 1; fi

.PHONY: verify-modules
verify-modules:
	go mod verify
	@for module in $(MODULES); do echo "verify: go.mod of $$module"; (cd "$$module" && go mod tidy -diff) || \
	  { echo "verify: run \`go mod tidy\` in $$module and commit"; exit 1; }; done

.PHONY: verify-console
verify-console: ## Check the types of the console's modules, where npm is there.
	$(CHECK)
	@go test -count=1 -run=TestModules ./apiserver/console

.PHONY: verify-licenses
verify-licenses: licenses
	@git diff --exit-code -- docs/licenses.md || { echo "verify: commit what \`make licenses\` wrote"; exit 1; }

# Every few dozen runs of the same file it fails with "`enum` value does not match schema type", which is known
# upstream as daveshanley/vacuum#916. A real mistake in the file fails twice.
VACUUM = go tool -modfile=hack/vacuum/go.mod vacuum lint --ruleset apiserver/openapi/vacuum.yaml --fail-severity info \
  --no-banner --no-style --details apiserver/openapi/openapi.yaml

.PHONY: verify-openapi
verify-openapi: ## Lint the REST contract (cold: building vacuum takes minutes).
	$(CHECK)
	@$(VACUUM) || { echo "verify: trying again, because vacuum sometimes reports valid enumerations as errors"; $(VACUUM); }

.PHONY: verify-scripts
verify-scripts:
	@git ls-files '*.sh' .ci/run | while read -r script; do bash -n "$$script" || exit 1; done

# Functions that none of our programs call. The API types and the client are for users; calls from tests do not count.
DEADCODE = $(TOOL) deadcode -filter '^github.com/appsec-dev/findings-operator/(apiserver|cmd|controllers|hack|internal|scanimport)(/|$$)' ./cmd/... ./hack/...

.PHONY: verify-used
verify-used:
	@unused=$$($(DEADCODE)) && if [ -n "$$unused" ]; then \
	  echo "verify: only tests call these functions, or nothing does; delete them or move them to the tests:"; echo "$$unused"; exit 1; fi
