#!/usr/bin/env bash
# Puts a node's programs into DIRECTORY/bin and its images into DIRECTORY/images.
set -euo pipefail
usage="Usage: hack/node/build.sh DIRECTORY"
case "${1:-}" in
  -h | --help) echo "$usage"; exit 0 ;;
  "" | -*) echo "$usage" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
source "$here/addresses.sh"
source "$here/folder.sh"
check_folder "$1"
report node
mkdir -p "$1"/{bin,images}
dir=$(cd "$1" && pwd)
touch "$dir/$marker"

"$root/hack/controlplane/build.sh" --node
for program in "$root"/bin/k8s/*; do ln -sf "$(readlink -f "$program")" "$dir/bin/"; done

echo "node: building the images of pods that every node has (cold: 2 minutes for CoreDNS) ..."
static() { CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' "$@"; }
(cd "$root" && static -o "$dir/bin/pause" ./hack/node/pause)
(cd "$here/coredns" && static -o "$dir/bin/coredns" github.com/coredns/coredns)
"$here/image.sh" "$dir/bin/pause" findings.test/pause:node 65535 "$dir/images/pause.tar"
"$here/image.sh" "$dir/bin/coredns" findings.test/coredns:node 65532 "$dir/images/coredns.tar"
