#!/usr/bin/env bash
# Runs the tests of each of our modules, and prints their events as one stream, for gotestsum.
# Vetting is left to `make verify`.
set -euo pipefail
case "${1:-}" in -h | --help) echo "Usage: hack/test.sh [FLAG OF go test ...]"; exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The race detector sees only its own process. These packages test programs that run beside them, or only the API server.
# What some of them also run in their own process has tests of its own with the detector.
outside='/test/(admission|attack|chart|conditions|conformance|console|e2e|image|plugin|privilege|samples|schema|targets|unreadable)$'

code=0
# in_module FOLDER ARGUMENT... tests packages of the module in a folder.
in_module() { (cd "$1" && shift && go test -json -vet=off "$@") || code=1; }

packages=$(go list -e ./...)
# shellcheck disable=SC2046 # import paths are words
in_module . "$@" $(grep -vE "$outside" <<<"$packages")
# shellcheck disable=SC2046
in_module . "$@" -race=false $(grep -E "$outside" <<<"$packages")
in_module bench "$@" ./...
in_module test/faults "$@" -race=false ./...
exit "$code"
