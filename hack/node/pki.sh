#!/usr/bin/env bash
# Makes the certificates and kubeconfig files of a node into DIRECTORY/pki, valid for 30 days, unless those of an earlier
# start are valid for another day.
set -euo pipefail
usage="Usage: hack/node/pki.sh DIRECTORY"
case "${1:-}" in
  -h | --help) echo "$usage"; exit 0 ;;
  "" | -*) echo "$usage" >&2; exit 2 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/addresses.sh"
mkdir -p "$1/pki"
cd "$1/pki"
# kubelet.kubeconfig is created last, and ca.crt expires first.
if [ -e kubelet.kubeconfig ] && openssl x509 -in ca.crt -noout -checkend 86400 >/dev/null; then exit; fi
rm -f kubelet.kubeconfig

private_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }

# certificate NAME SUBJECT EXTENSIONS
certificate() {
  private_key "$1.key"
  openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" \
    -extfile <(printf 'keyUsage=critical,digitalSignature,keyEncipherment\n%s\n' "$3") 2>/dev/null
  rm "$1.csr"
}

# kubeconfig NAME
kubeconfig() {
  cat >"$1.kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: node, cluster: {server: "https://$node_address:6443", certificate-authority: "$PWD/ca.crt"}}]
users: [{name: $1, user: {client-certificate: "$PWD/$1.crt", client-key: "$PWD/$1.key"}}]
contexts: [{name: node, context: {cluster: node, user: $1}}]
current-context: node
CONFIG
}

umask 077
private_key ca.key
openssl req -x509 -new -key ca.key -days 30 -subj "/CN=findings-node" -out ca.crt 2>/dev/null
names=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost
certificate apiserver "/CN=kube-apiserver" \
  "extendedKeyUsage=serverAuth
subjectAltName=$names,IP:127.0.0.1,IP:$node_address,IP:$api_service_address"

client="extendedKeyUsage=clientAuth"
certificate kubelet-client "/O=system:masters/CN=kube-apiserver-kubelet-client" "$client"
certificate admin "/O=system:masters/CN=admin" "$client"
certificate controller-manager "/CN=system:kube-controller-manager" "$client"
certificate scheduler "/CN=system:kube-scheduler" "$client"
certificate proxy "/CN=system:kube-proxy" "$client"
certificate kubelet "/O=system:nodes/CN=system:node:$node_name" "$client"
openssl genrsa -out service-accounts.key 2048 2>/dev/null
openssl rsa -in service-accounts.key -pubout -out service-accounts.pub 2>/dev/null
for name in admin controller-manager scheduler proxy kubelet; do kubeconfig "$name"; done
