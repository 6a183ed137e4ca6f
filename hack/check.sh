#!/usr/bin/env bash
# Checks, before anything is built, that a make target has what it needs on this machine.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: hack/check.sh TARGET

Checks what `make TARGET` needs beyond what it builds itself, names all that is missing with
the Debian package that brings it, and fails where the target cannot run without it.

Targets: attack bench bench-go build chart controlplane e2e etcdcost faults generate helm image
kine licenses lint pictures plane release run test verify verify-console verify-openapi vulncheck

Environment: REQUIRE_ALL=1 also fails if an optional prerequisite of the tests is missing.
USAGE
}

target=${1:-}
case "$target" in
  -h | --help) usage; exit 0 ;;
  "" | -*) usage >&2; exit 2 ;;
esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=hack/needs.sh
. "$here/needs.sh"

# Debian keeps PostgreSQL's servers out of the path.
postgresql() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || installed initdb; }

# The browsers that test/needs knows.
browser() { installed chromium-headless-shell || installed chromium || installed chromium-browser || installed google-chrome; }

# without WHAT PROGRAM... prints what is left out if one of the programs is missing. With REQUIRE_ALL=1 that is a failure.
without() {
  local what=$1 program
  shift
  for program in "$@"; do
    case "$program" in
      postgresql) if postgresql; then continue; fi ;;
      chromium) if browser; then continue; fi ;;
      *) if installed "$program"; then continue; fi ;;
    esac
    if [ "${REQUIRE_ALL:-}" = 1 ]; then
      problems+=("$program is not installed, and REQUIRE_ALL=1 requires every test to run")
    else
      echo "$target: $program is not installed: $what that need it are reported as skipped (.ci/run installs it)"
    fi
  done
}

# port_is_free PORT, on the loopback address
port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

need golang go
need git git

case "$target" in
  attack | bench-go | build | chart | controlplane | etcdcost | generate | helm | image | kine | licenses | lint | release | verify | \
    verify-console | verify-openapi | vulncheck) ;;
  run)
    port=${PORT:-8080}
    if ! [[ $port =~ ^[0-9]{1,5}$ ]] || [ "$port" -lt 1 ] || [ "$port" -gt 65535 ]; then
      problems+=("PORT is \"$port\": give a number between 1 and 65535")
    elif ! port_is_free "$port"; then
      problems+=("port $port is in use: stop what listens there, or give another: PORT=$((port % 65535 + 1)) RUN_DIR=.run-2 make run")
    fi
    case ${SAMPLES:-true} in
      1 | [tT] | true | True | TRUE | 0 | [fF] | false | False | FALSE) ;;
      *) problems+=("SAMPLES is \"$SAMPLES\": give true or false") ;;
    esac
    folder=${RUN_DIR:-.run}
    if [ -e "$folder" ] && ! [ -d "$folder" ]; then
      problems+=("RUN_DIR is \"$folder\", which is a file: give a folder")
    elif file=$(first_file "$folder") && [ -n "$file" ] && ! [ -e "$folder/lock" ]; then
      # As refuseOtherFiles in hack/local/lock.go.
      problems+=("RUN_DIR is \"$folder\", which contains $file: give a new or empty folder, or that of an earlier run")
    fi
    ;;
  test)
    without "the tests" curl gcc jq openssl redis-server node npm chromium postgresql
    if [ "${REQUIRE_ALL:-}" = 1 ] && installed go && [ -z "$("$here/race.sh" 2>/dev/null)" ]; then
      problems+=("the race detector cannot be used, and REQUIRE_ALL=1 requires it (see hack/race.sh)")
    fi
    ;;
  bench) without "the measurements" postgresql ;;
  pictures) need chromium chromium ;;
  faults) need redis-server redis-server ;;
  plane)
    postgresql || { missing+=(initdb); packages+=(postgresql); }
    need postgresql-client psql
    need openssl openssl
    ;;
  e2e)
    "$here/node/clear.sh" --check "${NODE_DIR:-.node}" || exit 1
    "$here/node/check.sh" --e2e >/dev/null || exit 1
    ;;
  *) echo "check: there is no target \"$target\"; see hack/check.sh --help" >&2; exit 2 ;;
esac

report "$target"
