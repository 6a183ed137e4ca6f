#!/usr/bin/env bash
# Puts etcd, kube-apiserver, kube-controller-manager and kubectl into bin/k8s, and also the
# programs of a node for a cluster that runs pods.
#
# A binary in the folder KUBEBUILDER_ASSETS is used as it is. The others are built from Go
# modules, once: see hack/cached.sh.
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

# shellcheck source=hack/cached.sh
. "$root/hack/cached.sh"
version=$(kubernetes_version)

for name in $names; do
  if [ -n "$assets" ] && [ -x "$assets/$name" ]; then
    link "$(cd "$assets" && pwd)/$name"
  else
    cached "$name" "$(package_of "$name")" "about 5 minutes for the first, less for the rest" "$(stamps "$version")"
  fi
done
