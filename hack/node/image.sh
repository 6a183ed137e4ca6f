#!/usr/bin/env bash
# Packs one static binary as an image from scratch, as a tar file of the OCI image layout.
set -euo pipefail
usage="Usage: hack/node/image.sh BINARY REFERENCE USER OUT.tar"
case "${1:-}" in -h | --help) echo "$usage"; exit 0 ;; esac
[ $# -eq 4 ] || { echo "$usage" >&2; exit 2; }
binary=$1 reference=$2 user=$3 out=$4

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root" "$work/oci/blobs/sha256"
pack() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$1" -cf "$2" .; }
# store FILE puts it into the layout under its digest, and prints that.
store() {
  local digest
  digest=$(sha256sum <"$1" | cut -d' ' -f1)
  cp "$1" "$work/oci/blobs/sha256/$digest"
  echo "$digest"
}
size() { stat -c %s "$1"; }

name=$(basename "$binary")
architecture=$(go env GOARCH)
install -m 0755 "$binary" "$work/root/$name"
pack "$work/root" "$work/layer"
layer=$(store "$work/layer")
cat >"$work/config" <<CONFIG
{"architecture":"$architecture","os":"linux","config":{"User":"$user","Entrypoint":["/$name"]},
 "rootfs":{"type":"layers","diff_ids":["sha256:$layer"]}}
CONFIG
config=$(store "$work/config")
cat >"$work/manifest" <<MANIFEST
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
 "config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$(size "$work/config")},
 "layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:$layer","size":$(size "$work/layer")}]}
MANIFEST
manifest=$(store "$work/manifest")
cat >"$work/oci/index.json" <<INDEX
{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json",
 "digest":"sha256:$manifest","size":$(size "$work/manifest"),"platform":{"architecture":"$architecture","os":"linux"},
 "annotations":{"io.containerd.image.name":"$reference","org.opencontainers.image.ref.name":"${reference##*:}"}}]}
INDEX
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/oci/oci-layout"
pack "$work/oci" "$out"
