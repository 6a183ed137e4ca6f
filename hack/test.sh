#!/usr/bin/env bash
# Runs the tests of each of our modules, and prints their events as one stream, for gotestsum.
# Vetting is left to `make verify`.
set -euo pipefail
case "${1:-}" in -h | --help) echo "Usage: hack/test.sh [FLAG OF go test ...]"; exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The race detector sees only its own process. These packages test programs that run beside them, or only the API server.
outside='/test/(admission|attack|chart|conditions|conformance|e2e|faults|image|plugin|privilege|schema|targets|unreadable)$'

code=0
# test_packages FLAG... tests the packages of the module here: those outside without the race detector.
test_packages() {
  local inside beside
  inside=$(go list ./... | grep -vE "$outside" || true)
  beside=$(go list ./... | grep -E "$outside" || true)
  # shellcheck disable=SC2086 # import paths are words
  if [ -n "$inside" ]; then go test -json -vet=off "$@" $inside || code=1; fi
  # shellcheck disable=SC2086
  if [ -n "$beside" ]; then go test -json -vet=off "$@" -race=false $beside || code=1; fi
}
for module in . bench test/faults; do
  cd "$module"
  test_packages "$@"
  cd - >/dev/null
done
exit "$code"
