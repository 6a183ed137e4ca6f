#!/usr/bin/env bash
# Puts helm and kubeconform into bin/, built from Go modules, once: see hack/cached.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../.." && pwd)/bin
# shellcheck source=hack/cached.sh
. "$here/../cached.sh"
only_help "helm and kubeconform" "$@"

cached helm helm.sh/helm/v4/cmd/helm "2 to 4 minutes"
cached kubeconform github.com/yannh/kubeconform/cmd/kubeconform "a minute"
