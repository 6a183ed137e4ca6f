#!/usr/bin/env bash
# Puts helm and kubeconform into bin/, built from Go modules, once: the result is kept in
# the user's cache folder under what go.mod and go.sum pin, so that a second clone takes
# a moment.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: hack/helm/build.sh [--help]

Fills bin/ with helm and kubeconform.

Environment:
  XDG_CACHE_HOME  where built binaries are kept (default: ~/.cache)
USAGE
}
case "${1:-}" in
  "") ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../.." && pwd)/bin
# shellcheck source=hack/cached.sh
. "$here/../cached.sh"

cached helm helm.sh/helm/v4/cmd/helm "2 to 4 minutes"
cached kubeconform github.com/yannh/kubeconform/cmd/kubeconform "a minute"
