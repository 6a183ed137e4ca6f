#!/usr/bin/env bash
# Runs the tests of each of our modules, and prints their events as one stream, for gotestsum.
# Vetting is left to `make verify`.
set -euo pipefail
case "${1:-}" in -h | --help) echo "Usage: [TEST_JOBS=3] hack/test.sh [FLAG OF go test ...]"; exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# How many packages are tested at a time, and beside some of them the fault tests: tests mostly wait, for control planes
# and other programs.
jobs=${TEST_JOBS:-3}

# The race detector only sees its own process. These packages test other processes. The code that they run
# in their own process is tested with the detector elsewhere.
outside='/(client|test/(admission|architecture|attack|chart|conditions|conformance|console|e2e|etcdcost|image|plugin|privilege|schema|targets))$'
# The detector finds nothing in a package in which nothing is concurrent: one without any of these words, which start
# goroutines or are used between them.
concurrent='\bgo (func|[a-zA-Z.]+)\(|\bchan\b|"sync|errgroup|AfterFunc|\.Parallel\(|httptest'
concurrent+='|testenv\.(Main|Start)|controllertest\.|harness\.(Background|Serve)'
# Tests that take 15 seconds to minutes with the detector, and seconds without it: they read all real scanner output or
# large sets, or measure memory. Most start no goroutine of ours; what the others start has tests of its own with the
# detector. Their packages are compiled twice, and must start no control plane for them.
alone='^Test(DecisionsStayWith|FindingsOfAnEarlierVersion|TheTextsOfFindingsAreBounded|AnExportHoldsLittle'
alone+='|AllocationsOfARequest)'
# The packages that take longest, the longest first: go starts packages in the given order, and one that starts last runs
# alone in the end.
longest=(./test/import ./test/api ./test/kinds ./controllers/finding ./controllers/triagepolicy ./controllers/scan
  ./controllers/webhookdelivery ./controllers/organization ./controllers/apikey ./cmd/findings-operator
  ./controllers/triageoperation ./controllers/retention
  ./test/attack ./test/conformance ./test/console ./test/etcdcost ./test/e2e ./test/plugin ./test/chart ./test/privilege)
# Without -race. uncached is for programs, scripts and files of other modules, whose changes Go's cache of results does
# not see. In bash 3.2, which macOS has, an empty array is an unbound variable.
plain=()
for flag in "$@"; do [ "$flag" = -race ] || plain+=("$flag"); done
uncached=(-count=1 ${plain[@]+"${plain[@]}"})
# By default each process with the detector sleeps a second before it exits.
export GORACE="atexit_sleep_ms=50 ${GORACE:-}"

code=0
# Without it the next tests would begin after Ctrl-C: the tests that it stops end with a status, not by the signal.
trap 'exit 130' INT
# in_module FOLDER ARGUMENT... tests packages of the module in a folder. Without the race detector, it compiles with the
# flags of `make build`, so that what both need is compiled once.
in_module() {
  local folder=$1 command=(env CGO_ENABLED=0 go test -trimpath)
  shift
  case " $* " in *" -race "*) command=(go test) ;; esac
  (cd "$folder" && "${command[@]}" -json -vet=off "$@") || code=1
}

packages=$(go list -e "${longest[@]}" ./...)
inside=$(grep -vE "$outside" <<<"$packages")
# sequential prints the packages in which nothing is concurrent.
sequential() {
  # shellcheck disable=SC2086 # import paths are words
  go list -e -f '{{.ImportPath}} {{.Dir}}' $inside | while read -r package folder; do
    grep -qsE "$concurrent" "$folder"/*.go || echo "$package"
  done
}
without=$(sequential)
inside=$(grep -vxF "$without" <<<"$inside")
# shellcheck disable=SC2086 # import paths are words
in_module . -p="$jobs" "$@" -skip="$alone" $inside
# shellcheck disable=SC2086
in_module . -p="$jobs" ${plain[@]+"${plain[@]}"} $without
# The fault tests mostly wait for processes that are down, so they run beside others, unless one package is to be tested
# at a time. Their events are printed last. They are a process group, which is interrupted when this script ends.
events=$(mktemp)
set -m
(in_module test/faults -p="$jobs" "${uncached[@]}" ./... && exit "$code") >"$events" &
faults=$!
set +m
trap 'rm -f "$events"; kill -INT -- "-$faults" 2>/dev/null || true' EXIT
[ "$jobs" -gt 1 ] || wait "$faults" || true
# shellcheck disable=SC2046
in_module . -p="$jobs" "${uncached[@]}" $(grep -E "$outside" <<<"$packages")
# shellcheck disable=SC2046,SC2086
in_module . -p="$jobs" "${uncached[@]}" -run="$alone" \
  $(grep -lsE "func ${alone#^}" $(go list -e -f '{{.Dir}}/*_test.go' $inside) | xargs -n1 dirname | sort -u)
in_module bench -p="$jobs" "${uncached[@]}" ./...
in_module test/alerts "${uncached[@]}" ./...
in_module hack/image "${uncached[@]}" ./...
wait "$faults" || code=1
cat "$events"
exit "$code"
