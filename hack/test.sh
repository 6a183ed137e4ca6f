#!/usr/bin/env bash
# Runs the tests of each of our modules, and prints their events as one stream, for gotestsum.
# Vetting is left to `make verify`.
set -euo pipefail
case "${1:-}" in
  -h | --help)
    echo "Usage: [TEST_JOBS=N] hack/test.sh [FLAG OF go test ...]"
    echo "N packages are tested at a time, and one more of those that mostly wait for other programs."
    exit 0 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=${TEST_JOBS:-2}

# The race detector sees only its own process. These packages test programs that run beside them, or only the API server.
outside='/test/(admission|attack|chart|conditions|conformance|e2e|image|plugin|privilege|schema|targets|unreadable)$'

code=0
# in_module FOLDER ARGUMENT... tests packages of the module in a folder.
in_module() { (cd "$1" && shift && go test -json -vet=off "$@") || code=1; }

# shellcheck disable=SC2046 # import paths are words
in_module . "$@" -p="$jobs" $(go list ./... | grep -vE "$outside")
# shellcheck disable=SC2046
in_module . "$@" -p="$((jobs + 1))" -race=false $(go list ./... | grep -E "$outside")
in_module bench "$@" -p="$jobs" ./...
in_module test/faults "$@" -p="$jobs" -race=false ./...
exit "$code"
