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

package_of() {
  case $1 in
    helm) echo helm.sh/helm/v4/cmd/helm ;;
    kubeconform) echo github.com/yannh/kubeconform/cmd/kubeconform ;;
  esac
}

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
key=$(cat "$here/go.mod" "$here/go.sum" | digest | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/findings-operator/helm/$(go env GOOS)-$(go env GOARCH)-$key

mkdir -p "$out" "$cache"
for name in helm kubeconform; do
  if [ ! -x "$cache/$name" ]; then
    started=$SECONDS
    echo "helm: building $name from Go modules (cold: 2 to 4 minutes for helm) ..."
    # Moved into place when whole: two builds at a time do the work twice and no harm.
    (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$cache/$name.tmp.$$" "$(package_of "$name")")
    mv "$cache/$name.tmp.$$" "$cache/$name"
    echo "helm: built $name in $((SECONDS - started)) s, kept in $cache"
  fi
  [ "$cache/$name" -ef "$out/$name" ] || ln -sf "$cache/$name" "$out/$name"
done
