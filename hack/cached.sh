# Builds programs from Go modules, once. To be sourced, with these set:
#   here  the folder whose go.mod and go.sum pin the modules; its name is that of the make target
#   out   the folder to put the programs into
#
# They are kept in the user's cache folder, under a hash of go.mod and go.sum, so that a second clone takes a moment.
# shellcheck shell=bash

: "${here:?}" "${out:?}"
target=${here##*/}

# only_help WHAT [ARGUMENT] ends a script that takes no arguments but --help. WHAT is what it fills bin/ with.
only_help() {
  local usage="Usage: hack/$target/build.sh [--help]

Fills bin/ with $1.

Environment:
  XDG_CACHE_HOME  where built binaries are kept (default: ~/.cache)"
  case "${2:-}" in
    "") ;;
    -h | --help) echo "$usage"; exit 0 ;;
    *) echo "$usage" >&2; exit 2 ;;
  esac
}

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

# build NAME PACKAGE COLD [LDFLAGS] builds a program into the cache. COLD is how long that takes on a new machine.
build() {
  local name=$1 program=$cache/$1 started=$SECONDS
  mkdir -p "$cache"
  echo "$target: building $name from Go modules (cold: $3) ..."
  # Moved into place once complete, so that an interrupted build leaves no half program, and concurrent builds do not
  # disturb each other.
  (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${4:-}" -o "$program.tmp.$$" "$2")
  mv "$program.tmp.$$" "$program"
  echo "$target: built $name in $((SECONDS - started)) s, kept in $cache"
}

# link PROGRAM links it into out.
link() {
  mkdir -p "$out"
  [ "$1" -ef "$out/${1##*/}" ] || ln -sf "$1" "$out/${1##*/}"
}

# cached NAME PACKAGE COLD [LDFLAGS] links a program into out, and builds it before unless it is in the cache.
cached() {
  local key cache
  key=$(cat "$here/go.mod" "$here/go.sum" | digest | cut -c1-16)
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/findings-operator/$target/$(go env GOOS)-$(go env GOARCH)-$key
  if [ ! -x "$cache/$1" ]; then build "$@"; fi
  link "$cache/$1"
}
