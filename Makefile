# findings-operator. `make help` lists the targets.
SHELL := /usr/bin/env bash -o pipefail
.DEFAULT_GOAL := help

K8S_BIN := bin/k8s

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"} /^[a-zA-Z_-]+:.*?##/ {printf "  \033[36m%-12s\033[0m %s\n", $$1, $$2} /^##@/ {printf "\n%s\n", substr($$0, 5)}' $(MAKEFILE_LIST)

##@ Development

.PHONY: generate
generate: ## Write all generated code and manifests anew.
	go tool controller-gen object paths=./api/...
	go tool controller-gen crd:allowDangerousTypes=false paths=./api/... output:crd:artifacts:config=config/crd/bases
	go tool -modfile=hack/tools/go.mod oapi-codegen -config apiserver/openapi/config.yaml apiserver/openapi/openapi.yaml

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl into bin/k8s, once.
	@hack/controlplane/build.sh
