#!/usr/bin/env bash
# Process 1 of the node, in mount, pid, net, ipc and uts namespaces of its own: see up.sh.
set -euo pipefail
dir=$1
source "$(dirname "${BASH_SOURCE[0]}")/addresses.sh"
bin=$dir/bin logs=$dir/logs state=$dir/state pki=$dir/pki conf=$dir/conf

hostname "$node_name"
mount --make-rshared /
mkdir -p "$state"/{varlib,varlog,etcd,sysctl}
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/lock
mount --bind "$state/varlib" /var/lib
mount --bind "$state/varlog" /var/log
mkdir -p /var/lib/{kubelet,containerd,cni} /var/log/{pods,containers}

# The kubelet requires these values. Bind mounts show them to it without changing the host's kernel.
while read -r key value; do
  file=$state/sysctl/${key//\//_}
  echo "$value" >"$file"
  mount --bind "$file" "/proc/sys/$key"
done <<'SYSCTLS'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
SYSCTLS

# wait_for WHAT TENTHS COMMAND...
wait_for() {
  local what=$1 tenths=$2
  shift 2
  for ((i = 0; i < tenths; i++)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "node: $what did not come up; see $logs" >&2
  exit 1
}

ip link set lo up
wait_for "the link to the machine" 100 ip link show eth0
ip addr add "$node_address/30" dev eth0
ip link set eth0 up
# The machine forwards nothing: pods reach only its end of the link.
ip route add default via "$host_address"
echo 1 >/proc/sys/net/ipv4/ip_forward # of this network namespace alone

run() {
  local name=$1
  shift
  "$@" >>"$logs/$name.log" 2>&1 &
}

run etcd "$bin/etcd" --data-dir "$state/etcd" --log-level warn \
  --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380
run kube-apiserver "$bin/kube-apiserver" --etcd-servers http://127.0.0.1:2379 \
  --advertise-address "$node_address" --bind-address 0.0.0.0 --secure-port 6443 \
  --service-cluster-ip-range "$service_range" --allow-privileged=true \
  --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
  --client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
  --kubelet-client-certificate "$pki/kubelet-client.crt" --kubelet-client-key "$pki/kubelet-client.key" \
  --kubelet-preferred-address-types InternalIP \
  --service-account-issuer https://kubernetes.default.svc \
  --service-account-key-file "$pki/service-accounts.pub" --service-account-signing-key-file "$pki/service-accounts.key"
wait_for kube-apiserver 3000 "$bin/kubectl" --kubeconfig "$pki/admin.kubeconfig" get --raw /readyz

# credentials NAME
credentials() {
  echo "--kubeconfig=$pki/$1.kubeconfig" "--authentication-kubeconfig=$pki/$1.kubeconfig" "--authorization-kubeconfig=$pki/$1.kubeconfig"
}
# shellcheck disable=SC2046 # one flag a word
run kube-controller-manager "$bin/kube-controller-manager" $(credentials controller-manager) \
  --bind-address 127.0.0.1 --leader-elect=false --use-service-account-credentials \
  --root-ca-file "$pki/ca.crt" --service-account-private-key-file "$pki/service-accounts.key" \
  --cluster-signing-cert-file "$pki/ca.crt" --cluster-signing-key-file "$pki/ca.key" \
  --cluster-cidr "$pod_range" --service-cluster-ip-range "$service_range" \
  --flex-volume-plugin-dir /var/lib/kubelet/volume-plugins
# shellcheck disable=SC2046
run kube-scheduler "$bin/kube-scheduler" $(credentials scheduler) --bind-address 127.0.0.1 --leader-elect=false

run containerd containerd --config "$conf/containerd.toml"
wait_for containerd 1200 ctr version
for image in "$dir"/images/*.tar; do ctr -n k8s.io images import "$image"; done
run kubelet "$bin/kubelet" --config "$conf/kubelet.yaml" --kubeconfig "$pki/kubelet.kubeconfig" \
  --hostname-override "$node_name" --node-ip "$node_address" --root-dir /var/lib/kubelet
run kube-proxy "$bin/kube-proxy" --config "$conf/kube-proxy.yaml" --hostname-override "$node_name"
echo "node: started"

# Processes that pods leave behind become children of this process.
trap 'exit 0' TERM INT
while :; do wait -n || true; sleep 0.2; done
