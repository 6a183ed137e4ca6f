#!/usr/bin/env bash
# Says whether a node can run on this machine, and if not, what is missing.
set -euo pipefail
case "${1:-}" in -h | --help) echo "Usage: hack/node/check.sh"; exit 0 ;; esac
problems=()
[ "$(uname -s)" = Linux ] || problems+=("this is $(uname -s), and a node needs Linux")
[ "$(id -u)" -eq 0 ] || problems+=("run it as root")
missing=()
for program in containerd runc ctr iptables ip openssl unshare nsenter; do
  command -v "$program" >/dev/null || missing+=("$program")
done
[ -x /usr/lib/cni/bridge ] || missing+=("/usr/lib/cni/bridge")
if [ ${#missing[@]} -gt 0 ]; then
  problems+=("not found: ${missing[*]} (Debian: apt-get install containerd runc containernetworking-plugins iptables iproute2 openssl)")
fi
if [ ${#problems[@]} -eq 0 ] && ! unshare --mount --pid --net --ipc --uts --fork true 2>/dev/null; then
  problems+=("this machine does not let root make namespaces (in a container? it needs CAP_SYS_ADMIN and CAP_NET_ADMIN)")
fi
if [ ${#problems[@]} -gt 0 ]; then
  printf 'node: cannot run here: %s\n' "${problems[@]}" >&2
  exit 1
fi
