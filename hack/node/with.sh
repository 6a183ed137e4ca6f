#!/usr/bin/env bash
# Runs a command that starts a node, and ends the node whatever becomes of the command.
set -euo pipefail
usage() {
  cat <<'USAGE'
Usage: hack/node/with.sh DIRECTORY COMMAND [ARGUMENT...]

Runs COMMAND and then ends the node in DIRECTORY: after a failure, a panic or a timeout of
COMMAND, and on Ctrl-C and SIGTERM, which end COMMAND and all that it has started in its process
group. The exit status is COMMAND's.
USAGE
}
case "${1:-}" in -h | --help) usage; exit 0 ;; esac
[ $# -ge 2 ] || { usage >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$1
shift

set -m # a process group for the command, out of the terminal's Ctrl-C: what it started must end with it
"$@" </dev/null &
command=$!
trap 'kill -TERM -- "-$command" 2>/dev/null || true' INT TERM HUP
trap '"$here/down.sh" "$dir"' EXIT
status=0
wait "$command" || status=$?
# A signal ends the wait, but not the command.
while kill -0 "$command" 2>/dev/null; do
  wait "$command" && status=0 || status=$?
done
# A killed command may leave processes of its group.
kill -KILL -- "-$command" 2>/dev/null || true
exit "$status"
