# Collects what keeps a script from running on this machine. To be sourced.
# shellcheck shell=bash

missing=()  # programs, with the Debian packages that bring them
packages=()
problems=() # anything else

installed() { command -v "$1" >/dev/null 2>&1; }

# first_file FOLDER prints the name of a file in the folder, hidden ones too; nothing if it is empty.
first_file() (
  shopt -s dotglob nullglob
  files=("$1"/*)
  [ ${#files[@]} -eq 0 ] || echo "${files[0]##*/}"
)

# need PACKAGE PROGRAM...
need() {
  local package=$1 program found=yes
  shift
  for program in "$@"; do
    installed "$program" || { missing+=("$program"); found=; }
  done
  [ -n "$found" ] || packages+=("$package")
}

# report NAME ends the script with a failure that names all that was collected, if anything was.
report() {
  if [ ${#missing[@]} -gt 0 ]; then
    problems+=("not found: ${missing[*]} (Debian: apt-get install ${packages[*]})")
  fi
  if [ ${#problems[@]} -gt 0 ]; then
    printf "$1: cannot run here: %s\n" "${problems[@]}" >&2
    exit 1
  fi
}
