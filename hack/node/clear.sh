#!/usr/bin/env bash
# Empties a node's folder, so that its next start makes a fresh cluster.
set -euo pipefail
usage() {
  cat <<'USAGE'
Usage: hack/node/clear.sh [--check] DIRECTORY

Empties DIRECTORY, or makes it. Refuses a folder that contains anything and was not a node's.
With --check it only does that.
USAGE
}
check=
case "${1:-}" in
  -h | --help) usage; exit 0 ;;
  --check) check=yes; shift ;;
esac
[ $# -eq 1 ] && [ -n "$1" ] || { usage >&2; exit 2; }
source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/../needs.sh"
dir=$1

if [ -e "$dir" ] && ! [ -d "$dir" ]; then
  problems+=("NODE_DIR is \"$dir\", which is a file: give a folder")
elif file=$(first_file "$dir") && [ -n "$file" ] && ! { [ -d "$dir/state" ] && [ -d "$dir/images" ]; }; then
  problems+=("NODE_DIR is \"$dir\", which contains $file: give a new or empty folder, or that of an earlier node")
fi
report node
[ -z "$check" ] || exit 0

mkdir -p "$dir"
find "$dir/" -mindepth 1 -delete
mkdir "$dir/state" "$dir/images"
