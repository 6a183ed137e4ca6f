#!/usr/bin/env bash
# Puts kine into bin/, built from Go modules, once: see hack/cached.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../.." && pwd)/bin
# shellcheck source=hack/cached.sh
. "$here/../cached.sh"
only_help "kine, which lets kube-apiserver keep its objects in PostgreSQL" "$@"

# Without cgo it contains no SQLite, which nothing here needs.
cached kine github.com/k3s-io/kine "2 to 8 minutes, most of it fetching modules"
