#!/usr/bin/env bash
# Puts etcd, kube-apiserver, kube-controller-manager and kubectl into bin/k8s, and for a
# cluster that runs pods the programs of a node too.
#
# A binary found in the folder KUBEBUILDER_ASSETS is used as it is. What is missing
# there is built from Go modules, once: the result is kept in the user's cache folder
# under the versions that go.mod and go.sum pin, so that a second clone takes seconds.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: hack/controlplane/build.sh [--node] [--help]

Fills bin/k8s with etcd, kube-apiserver, kube-controller-manager and kubectl;
with --node also with kubelet, kube-scheduler and kube-proxy.

Environment:
  KUBEBUILDER_ASSETS  a folder that may already hold some of them; used first
  XDG_CACHE_HOME      where built binaries are kept (default: ~/.cache)
USAGE
}
names="etcd kube-apiserver kube-controller-manager kubectl"
case "${1:-}" in
  "") ;;
  --node) names="$names kubelet kube-scheduler kube-proxy" ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/bin/k8s
assets=${KUBEBUILDER_ASSETS:-}
if [ -n "$assets" ] && [ ! -d "$assets" ]; then
  echo "controlplane: KUBEBUILDER_ASSETS is \"$assets\": give a folder with control-plane binaries, or unset it" >&2
  exit 1
fi

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

# A server that is not stamped reports a version that kubectl cannot parse.
kubernetes_version() { sed -n 's|^[[:space:]]*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$here/go.mod"; }
stamps() {
  local version=$1 major minor package
  IFS=. read -r major minor _ <<<"${version#v}"
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s -X %s.gitTreeState=clean ' \
      "$package" "$version" "$package" "$major" "$package" "$minor" "$package"
  done
}

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
key=$(cat "$here/go.mod" "$here/go.sum" | digest | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/findings-operator/controlplane/$(go env GOOS)-$(go env GOARCH)-$key
version=$(kubernetes_version)

build() {
  local name=$1 started=$SECONDS
  mkdir -p "$cache"
  echo "controlplane: building $name from Go modules (cold: about 5 minutes for the first, less for the rest) ..."
  # Moved into place when whole: a build that is cut off leaves no half binary behind, and two builds at a time do the
  # work twice and no harm.
  (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $(stamps "$version")" \
    -o "$cache/$name.tmp.$$" "$(package_of "$name")")
  mv "$cache/$name.tmp.$$" "$cache/$name"
  echo "controlplane: built $name in $((SECONDS - started)) s, kept in $cache"
}

mkdir -p "$out"
for name in $names; do
  if [ -n "$assets" ] && [ -x "$assets/$name" ]; then
    source=$(cd "$assets" && pwd)/$name
  else
    source=$cache/$name
    [ -x "$source" ] || build "$name"
  fi
  [ "$source" -ef "$out/$name" ] || ln -sf "$source" "$out/$name"
done
