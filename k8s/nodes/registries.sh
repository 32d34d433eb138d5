#!/bin/sh
# Run on a node before containerd starts (user data, or node image): makes it use registries within the cluster, which speak HTTP.
#   sh registries.sh ghcr.io=10.100.0.51 docker.io=10.100.0.52 nvcr.io=10.100.0.53 registry-builds.gpu-controlplane.svc.cluster.local:5000=10.100.0.54
# Each argument is REGISTRY=ADDRESS: the registry's name in image references, and the address of its Service, which listens on port
# 5000. If a cache does not answer, containerd uses the registry itself. ODC_ROOT: the root of the node's files, if it is not /.
set -eu
root=${ODC_ROOT:-}

for pair in "$@"; do
  case "$pair" in
    *[!A-Za-z0-9.:=_-]* | =* | *= | *=*=*) echo "registries.sh: \"$pair\" is not REGISTRY=ADDRESS" >&2; exit 2 ;;
    *=*) ;;
    *) echo "registries.sh: \"$pair\" is not REGISTRY=ADDRESS" >&2; exit 2 ;;
  esac
  registry=${pair%%=*} address=${pair#*=}
  folder=$root/etc/containerd/certs.d/$registry
  mkdir -p "$folder"
  {
    case "$registry" in
      docker.io) echo 'server = "https://registry-1.docker.io"' ;;
      # A registry of the cluster itself has no other address.
      *.svc.*) echo "server = \"http://$address:5000\"" ;;
      *) echo "server = \"https://$registry\"" ;;
    esac
    echo "[host.\"http://$address:5000\"]"
    echo '  capabilities = ["pull", "resolve"]'
  } >"$folder/hosts.toml"
done

# For nodes that also have docker. Its list cannot be merged, so the file is only written if there is none.
if [ -d "$root/etc/docker" ] && [ ! -e "$root/etc/docker/daemon.json" ]; then
  list=''
  for pair in "$@"; do list="$list${list:+, }\"${pair#*=}:5000\""; done
  printf '{"insecure-registries": [%s]}\n' "$list" >"$root/etc/docker/daemon.json"
fi
