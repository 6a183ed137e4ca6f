#!/usr/bin/env bash
# Starts a cluster of one node, apart from the machine, and waits until it is ready.
set -euo pipefail
usage() {
  cat <<'USAGE'
Usage: hack/node/up.sh [DIRECTORY]

Starts a Kubernetes cluster of one node in namespaces of its own. DIRECTORY (default .node)
holds its state: a second start continues where the first ended. Refuses a folder that
contains anything and was not a node's. The images in DIRECTORY/images/*.tar are there from the
start (hack/node/clear.sh DIRECTORY makes that folder). Use it with

  export KUBECONFIG=DIRECTORY/pki/admin.kubeconfig

and end it with hack/node/down.sh. Needs root, and what hack/node/README.md lists.
USAGE
}
case "${1:-}" in -h | --help) usage; exit 0 ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/addresses.sh"
source "$here/processes.sh"
source "$here/folder.sh"
check_folder "${1:-.node}"
report node
mkdir -p "${1:-.node}"
dir=$(cd "${1:-.node}" && pwd)

if node_runs "$dir"; then
  echo "node: one runs in $dir already; end it with hack/node/down.sh $dir" >&2
  exit 1
fi
"$here/check.sh"

touch "$dir/$marker"
mkdir -p "$dir"/{state,logs,images,conf/cni}
"$here/build.sh" "$dir"
for file in containerd.toml kubelet.yaml kube-proxy.yaml; do sed "s|@DIR@|$dir|g" "$here/conf/$file" >"$dir/conf/$file"; done
cp "$here/conf/cni.conflist" "$dir/conf/cni/10-findings.conflist"
: >"$dir/conf/resolv.conf"
"$here/pki.sh" "$dir"

# With version 1 of control groups each controller has a tree of its own; version 2 makes one
# itself, below the root.
for tree in /sys/fs/cgroup/*/; do
  case $tree in */unified/) ;; *) [ -e "${tree}cgroup.procs" ] && [ -e "${tree}tasks" ] && mkdir -p "$tree$group" ;; esac
done
for file in cpus mems; do
  [ ! -e "/sys/fs/cgroup/cpuset/$group" ] || cat "/sys/fs/cgroup/cpuset/cpuset.$file" >"/sys/fs/cgroup/cpuset/$group/cpuset.$file"
done

# A build beside the node has many threads, each of which gets as much time as this whole group: at the usual
# weight no pod would answer its probes in time. Version 2 has the file once the group is made.
share() { if [ -w "$1" ]; then echo "$2" >"$1"; fi; }
share "/sys/fs/cgroup/cpu/$group/cpu.shares" 16384

setsid unshare --mount --pid --net --ipc --uts --fork --mount-proc --kill-child \
  bash "$here/init.sh" "$dir" >"$dir/logs/init.log" 2>&1 </dev/null &
unshared=$!
# End a node that does not become ready; its logs stay.
trap '[ $? -eq 0 ] || "$here/down.sh" "$dir"' EXIT
record "$dir/state/unshare" "$unshared"
init=
for ((i = 0; i < 100; i++)); do
  init=$(tr -d ' ' <"/proc/$unshared/task/$unshared/children" 2>/dev/null || true)
  if [ -n "$init" ] && [ "$(readlink "/proc/$init/ns/net")" != "$(readlink /proc/self/ns/net)" ]; then break; fi
  sleep 0.1
done
[ -n "$init" ] || { echo "node: it did not start; see $dir/logs/init.log" >&2; exit 1; }
record "$dir/state/init" "$init"

ip link add "$link" type veth peer name eth0 netns "$init"
ip addr add "$host_address/30" dev "$link"
ip link set "$link" up
ip route add "$pod_range" via "$node_address"
ip route add "$service_range" via "$node_address"

echo "node: waiting until it is ready ..."
kubectl() { "$dir/bin/kubectl" --kubeconfig "$dir/pki/admin.kubeconfig" "$@"; }
ready() { [ "$(kubectl get node "$node_name" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ]; }
for ((i = 0; i < 1500; i++)); do
  if [ ! -d "/proc/$init" ]; then
    tail -5 "$dir/logs/init.log" >&2
    echo "node: it ended; see $dir/logs" >&2
    exit 1
  fi
  if ready; then break; fi
  sleep 0.2
done
ready || { echo "node: not ready after five minutes; see $dir/logs" >&2; exit 1; }
# On a busy machine the node is ready before the API server has published its own service account.
for ((i = 0; i < 300; i++)); do
  if kubectl apply -f "$here/conf/coredns.yaml" >/dev/null 2>"$dir/logs/coredns-apply.log"; then break; fi
  sleep 0.2
done
kubectl -n kube-system rollout status deployment/coredns --timeout=300s >/dev/null
share "/sys/fs/cgroup/$group/cpu.weight" 1000
echo "node: ready. export KUBECONFIG=$dir/pki/admin.kubeconfig"
