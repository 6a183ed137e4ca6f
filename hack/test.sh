#!/usr/bin/env bash
# Runs the tests of each of our modules, and prints their events as one stream, for gotestsum.
set -euo pipefail
case "${1:-}" in -h | --help) echo "Usage: hack/test.sh [FLAG OF go test ...]"; exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
code=0
for module in . bench test/faults; do
  (cd "$module" && go test -json "$@" ./...) || code=1
done
exit "$code"
