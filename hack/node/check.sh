#!/usr/bin/env bash
# Checks whether a node can run on this machine, and names all that is missing.
set -euo pipefail
usage="Usage: hack/node/check.sh [--e2e]   (--e2e: and what the tests of \`make e2e\` need beside a node)"
e2e=
case "${1:-}" in
  "") ;;
  --e2e) e2e=yes ;;
  -h | --help) echo "$usage"; exit 0 ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/addresses.sh"
source "$here/../needs.sh"
[ "$(uname -s)" = Linux ] || problems+=("this is $(uname -s), and a node needs Linux")
[ "$(id -u)" -eq 0 ] || problems+=("run it as root")
need golang go
need containerd containerd ctr
need runc runc
need containernetworking-plugins /usr/lib/cni/bridge
need iptables iptables
need iproute2 ip
need openssl openssl
need util-linux unshare nsenter setsid
[ -z "$e2e" ] || need redis-server redis-server
report node
unshare --mount --pid --net --ipc --uts --fork true 2>/dev/null ||
  problems+=("this machine does not let root make namespaces (in a container? it needs CAP_SYS_ADMIN and CAP_NET_ADMIN)")
if ip link show "$link" >/dev/null 2>&1 || ip route | grep -qE '10\.(243|244|96)\.'; then
  problems+=("the addresses (10.243.0.0/30, $pod_range, $service_range) or the link of a node are in use: is another node running, or was one killed? hack/node/down.sh DIRECTORY tidies up")
fi
report node
