#!/usr/bin/env bash
# Prints how many tests passed and failed, the last line of a run: gotestsum calls it with the numbers
# in the environment.
set -euo pipefail
case "${1:-}" in -h | --help) echo "Usage: TESTS_TOTAL=N TESTS_FAILED=N TESTS_SKIPPED=N TESTS_ERRORS=N hack/count.sh"; exit 0 ;; esac
failed=$((${TESTS_FAILED:-0} + ${TESTS_ERRORS:-0}))
# What fails before its first test counts as failed, and is not part of the total.
passed=$((${TESTS_TOTAL:-0} - ${TESTS_FAILED:-0} - ${TESTS_SKIPPED:-0}))
line="$((passed > 0 ? passed : 0)) passed, $failed failed"
if [ "${TESTS_SKIPPED:-0}" -gt 0 ]; then line+=", $TESTS_SKIPPED not run"; fi
echo "$line"
