#!/usr/bin/env bash
# Ends the node and removes what it installed. Its state stays.
set -euo pipefail
case "${1:-}" in
  -h | --help)
    echo "Usage: hack/node/down.sh [DIRECTORY]   (default .node; hack/node/clear.sh empties it for a fresh cluster)"
    exit 0
    ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/addresses.sh"
source "$(dirname "${BASH_SOURCE[0]}")/processes.sh"
dir=${1:-.node}

# Process 1 ends with all processes of its namespace.
for name in init unshare; do
  if runs "$dir/state/$name"; then kill -9 "$(cat "$dir/state/$name.pid")" 2>/dev/null || true; fi
done
for ((i = 0; i < 1200; i++)); do
  if ! runs "$dir/state/unshare"; then break; fi
  sleep 0.1
done
# This removes its routes, too.
ip link del "$link" 2>/dev/null || true
for ((i = 0; i < 600; i++)); do
  for tree in /sys/fs/cgroup/*/"$group" /sys/fs/cgroup/"$group"; do
    if [ -d "$tree" ]; then find "$tree" -depth -type d -exec rmdir {} \; 2>/dev/null || true; fi
  done
  if ! compgen -G "/sys/fs/cgroup/*/$group" >/dev/null && [ ! -d "/sys/fs/cgroup/$group" ]; then break; fi
  sleep 0.1
done
rm -f "$dir"/state/{init,unshare}.{pid,started}
