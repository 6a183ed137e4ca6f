# Which folders may become a node's. clear.sh removes all that a marked folder contains. To be sourced after addresses.sh.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/../needs.sh"

# is_node FOLDER succeeds if the folder was a node's. Earlier nodes have no marker.
is_node() { [ -e "$1/$marker" ] || { [ -d "$1/state" ] && [ -e "$1/pki/admin.kubeconfig" ]; }; }

# check_folder FOLDER adds a problem for a file, and for a folder that contains anything and was not a node's.
check_folder() {
  local file
  if [ -e "$1" ] && ! [ -d "$1" ]; then
    problems+=("the folder of the node is \"$1\", which is a file: give a folder")
  elif file=$(first_file "$1") && [ -n "$file" ] && ! is_node "$1"; then
    problems+=("the folder of the node is \"$1\", which contains $file: give a new or empty one, or an earlier node's")
  fi
}
