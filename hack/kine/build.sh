#!/usr/bin/env bash
# Puts kine into bin/, built from Go modules, once: the result is kept in the user's cache
# folder under what go.mod and go.sum pin, so that a second clone takes a moment.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: hack/kine/build.sh [--help]

Fills bin/ with kine, which lets kube-apiserver keep its objects in PostgreSQL.

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

# Without cgo it contains no SQLite, which nothing here needs.
cached kine github.com/k3s-io/kine "2 to 8 minutes, most of it fetching modules"
