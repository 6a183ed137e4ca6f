#!/usr/bin/env bash
# Checks what `make release` has built, as people would install it.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: hack/release/check.sh VERSION

Checks bin/release: the checksums hold, krew takes the manifest for every platform and installs the archive of this
machine's, and the installed plugin is of VERSION.
USAGE
}
version=${1:-}
case "$version" in
  -h | --help) usage; exit 0 ;;
  "" | -*) usage >&2; exit 2 ;;
esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../bin/release"
tool() { go tool -modfile="$here/go.mod" "$@"; }

digest() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }
digest --check --quiet checksums.txt
echo "release: the checksums of $(wc -l <checksums.txt | tr -d ' ') files hold"

# Its URLs only exist once the release is published, so nothing is downloaded.
tool validate-krew-manifest -manifest krew/findings.yaml -skip-install 2>/dev/null ||
  tool validate-krew-manifest -manifest krew/findings.yaml -skip-install
os=$(go env GOOS) architecture=$(go env GOARCH)
archive=kubectl-findings_${version}_${os}_$architecture.tar.gz
[ "$os" != windows ] || archive=${archive%.tar.gz}.zip
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
KREW_ROOT=$root tool krew install --manifest krew/findings.yaml --archive "$archive" >"$root/log" 2>&1 || {
  cat "$root/log" >&2
  exit 1
}
said=$("$root/bin/kubectl-findings" --version)
if [ "$said" != "kubectl findings version $version" ]; then
  echo "release: the installed plugin says \"$said\", and not that it is $version" >&2
  exit 1
fi
echo "release: krew takes the manifest and installs $archive: $said"
