#!/usr/bin/env bash
# Runs the tests of each of our modules, and prints their events as one stream, for gotestsum.
# Vetting is left to `make verify`.
set -euo pipefail
case "${1:-}" in -h | --help) echo "Usage: [TEST_JOBS=3] hack/test.sh [FLAG OF go test ...]"; exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# How many packages are tested at a time: tests wait for control planes. Those that drive programs wait less.
jobs=${TEST_JOBS:-3}
fewer=$((jobs > 1 ? jobs - 1 : 1))

# The race detector sees only its own process. These packages test programs that run beside them, or only the API server.
# What some of them also run in their own process has tests of its own with the detector.
outside='/test/(admission|attack|chart|conditions|conformance|console|e2e|etcdcost|image|plugin|privilege|samples|schema|targets|unreadable)$'

code=0
# in_module FOLDER ARGUMENT... tests packages of the module in a folder.
in_module() { (cd "$1" && shift && go test -json -vet=off "$@") || code=1; }

# without_race FOLDER ARGUMENT... is in_module without the race detector, and with the flags of `make build`, so that
# what both need is compiled once.
without_race() {
  local folder=$1
  shift
  CGO_ENABLED=0 in_module "$folder" -p="$fewer" "$@" -race=false -trimpath
}

packages=$(go list -e ./...)
# shellcheck disable=SC2046 # import paths are words
in_module . -p="$jobs" "$@" $(grep -vE "$outside" <<<"$packages")
# shellcheck disable=SC2046
without_race . "$@" $(grep -E "$outside" <<<"$packages")
in_module bench -p="$fewer" "$@" ./...
without_race test/faults "$@" ./...
exit "$code"
