#!/usr/bin/env bash
# Empties a node's folder, so that its next start makes a fresh cluster.
set -euo pipefail
usage() {
  cat <<'USAGE'
Usage: hack/node/clear.sh [--check] DIRECTORY

Empties DIRECTORY, or makes it. Refuses a folder that contains anything and was not a node's,
and that of a node that runs. With --check it changes nothing.
USAGE
}
check=
case "${1:-}" in
  -h | --help) usage; exit 0 ;;
  --check) check=yes; shift ;;
esac
[ $# -eq 1 ] && [ -n "$1" ] || { usage >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/addresses.sh"
source "$here/processes.sh"
source "$here/folder.sh"
dir=$1

check_folder "$dir"
if node_runs "$dir"; then problems+=("a node runs in $dir: end it with hack/node/down.sh $dir"); fi
report node
[ -z "$check" ] || exit 0

mkdir -p "$dir"
touch "$dir/$marker" # it stays if the removal is interrupted
find "$dir/" -mindepth 1 ! -samefile "$dir/$marker" -delete
mkdir "$dir/images"
