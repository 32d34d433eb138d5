#!/bin/bash
# The first program of a real node, in namespaces of its own. Argument: its folder. Variables: CPUS, MEMORY_KIB, HUGEPAGES.
set -eu
cd "$1"
# As on a machine whose root is shared: mounts of volumes appear in containers that run already.
mount --make-rshared /
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
mount -t tmpfs none /var/log
mkdir -p /run/containerd /run/netns /var/lib/cni /var/log/containers
for path in /var/lib/kubelet /var/lib/containerd /var/log/pods; do
  mkdir -p "$path" "$(basename "$path")"
  mount --bind "$(basename "$path")" "$path"
done

# The machine that the node poses as.
rm -rf fake && mkdir fake
mount -t tmpfs none /sys/devices/system/node
mount -t tmpfs none /sys/devices/system/cpu
cpus=/sys/devices/system/cpu last=$((CPUS - 1))
mkdir -p $(seq -f "$cpus/cpu%g/topology" 0 "$last")
for number in $(seq 0 "$last"); do
  echo "$number" >"$cpus/cpu$number/topology/core_id"
  echo 0 >"$cpus/cpu$number/topology/physical_package_id"
done
sed -E "s/^(MemTotal|MemFree|MemAvailable):.*/\1: $MEMORY_KIB kB/" /proc/meminfo >fake/meminfo
mount --bind fake/meminfo /proc/meminfo
if [ -d /sys/kernel/mm/hugepages/hugepages-2048kB ]; then
  cp -r /sys/kernel/mm/hugepages fake/hugepages 2>/dev/null || true
  echo "$HUGEPAGES" >fake/hugepages/hugepages-2048kB/nr_hugepages
  mount --bind fake/hugepages /sys/kernel/mm/hugepages
fi

# kubelet changes these settings of the kernel: here, only their copies.
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
  kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  copy=fake/$(echo "$name" | tr / _)
  cat "/proc/sys/$name" >"$copy"
  mount --bind "$copy" "/proc/sys/$name"
done
cat /proc/sys/kernel/random/uuid >fake/boot_id
mount --bind fake/boot_id /proc/sys/kernel/random/boot_id
: >booted

# As init: take in orphans, until power is off.
while :; do sleep 3600 & wait; done
