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

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
key=$(cat "$here/go.mod" "$here/go.sum" | digest | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/findings-operator/kine/$(go env GOOS)-$(go env GOARCH)-$key

mkdir -p "$out" "$cache"
if [ ! -x "$cache/kine" ]; then
  started=$SECONDS
  echo "kine: building kine from Go modules (cold: 2 to 8 minutes, most of it fetching them) ..."
  # Without cgo there is no SQLite in it, which is not what it is for here. Moved into place when
  # whole: two builds at a time do the work twice and no harm.
  (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$cache/kine.tmp.$$" github.com/k3s-io/kine)
  mv "$cache/kine.tmp.$$" "$cache/kine"
  echo "kine: built kine in $((SECONDS - started)) s, kept in $cache"
fi
[ "$cache/kine" -ef "$out/kine" ] || ln -sf "$cache/kine" "$out/kine"
