#!/usr/bin/env bash
# Prints -race where Go's race detector works, else nothing, and the reason on standard error.
set -euo pipefail
case "${1:-}" in -h | --help) echo "Usage: hack/race.sh"; exit 0 ;; esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The race detector needs cgo, which needs a C compiler and the C library's headers.
printf 'package main\n\n// #include <stdlib.h>\nimport "C"\n\nfunc main() { C.free(nil) }\n' >"$folder/main.go"
if said=$(cd "$folder" && GOFLAGS= GO111MODULE=off go build -race -o "$folder/program" main.go 2>&1); then
  echo -race
  exit
fi
echo "test: running WITHOUT the race detector, which does not work here: $(tail -n 1 <<<"$said") (Debian: apt-get install gcc libc6-dev)" >&2
