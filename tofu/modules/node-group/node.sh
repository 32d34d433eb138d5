#!/bin/bash
# Prepares a node before kubelet starts.
set -euo pipefail

%{ if gpu ~}
# GPUs reach containers only through the device plugin. This comes first: without it, any container can get all GPUs.
nvidia-ctk config --in-place --set accept-nvidia-visible-devices-envvar-when-unprivileged=false --set accept-nvidia-visible-devices-as-volume-mounts=true

%{ endif ~}
# A node that was rebooted must join again.
systemctl enable kubelet containerd

# Large buffers for connections between nodes.
cat >/etc/sysctl.d/90-odc-network.conf <<'CONF'
net.core.rmem_max = 268435456
net.core.wmem_max = 268435456
net.ipv4.tcp_rmem = 4096 87380 134217728
net.ipv4.tcp_wmem = 4096 65536 134217728
net.core.netdev_max_backlog = 250000
CONF
sysctl --quiet --load /etc/sysctl.d/90-odc-network.conf

# Jobs are not root, so IPC_LOCK does not raise their limit; RDMA needs it.
mkdir -p /etc/systemd/system/containerd.service.d
printf '[Service]\nLimitMEMLOCK=infinity\n' >/etc/systemd/system/containerd.service.d/memlock.conf
systemctl daemon-reload
%{ if efa ~}

# EFA: the driver, huge pages, and the module that lets it read the memory of GPUs.
%{ if efa_installer_version != "" ~}
curl -fsSL "https://efa-installer.amazonaws.com/aws-efa-installer-${efa_installer_version}.tar.gz" | tar -xz -C /tmp
(cd /tmp/aws-efa-installer && ./efa_installer.sh --yes --minimal)
%{ endif ~}
modprobe efa
echo efa >/etc/modules-load.d/odc-efa.conf
%{ if gpu ~}
if modprobe efa_nv_peermem || modprobe nvidia_peermem; then
  lsmod | awk '$1 ~ /^(efa_nv_peermem|nvidia_peermem)$/ {print $1}' >/etc/modules-load.d/odc-peer-memory.conf
else
  echo "no peer memory module: GPU direct RDMA uses dma-buf if the driver supports it" >&2
fi
%{ endif ~}
echo "vm.nr_hugepages = ${huge_pages}" >/etc/sysctl.d/91-odc-huge-pages.conf
sysctl --quiet --load /etc/sysctl.d/91-odc-huge-pages.conf
%{ endif ~}
%{ if gpu ~}
%{ if profiling ~}

# Counters of Nsight for everyone on this node. The module reads the option when it is loaded, so it is written first.
echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' >/etc/modprobe.d/odc-profiling.conf
if lsmod | grep -q '^nvidia '; then
  systemctl stop nvidia-persistenced nvidia-fabricmanager 2>/dev/null || true
  modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem nvidia 2>/dev/null || true
fi
%{ endif ~}

# Load the driver, create its device files, and keep it loaded.
printf 'nvidia\nnvidia_uvm\n' >/etc/modules-load.d/odc-nvidia.conf
modprobe nvidia
modprobe nvidia_uvm
systemctl enable --now nvidia-persistenced || true
nvidia-smi -pm 1
%{ if profiling ~}
grep -q 'RmProfilingAdminOnly: 0' /proc/driver/nvidia/params || echo "the driver was loaded before its option: restart this node for Nsight" >&2
%{ endif ~}
%{ if fabric_manager ~}

# Without the fabric manager, CUDA fails with error 802 on GPUs that are connected by NVSwitch.
systemctl enable --now nvidia-fabricmanager
%{ endif ~}
%{ endif ~}
%{ if registries != "" ~}

# Registries within the cluster.
cat >/run/odc-registries.sh <<'REGISTRIES'
${registries_script}
REGISTRIES
sh /run/odc-registries.sh ${registries}
%{ endif ~}
%{ if length(prepull_images) > 0 ~}

# Pull images as soon as containerd runs, at every boot.
cat >/etc/systemd/system/odc-prepull.service <<'UNIT'
[Unit]
Description=Pull images for jobs
After=containerd.service kubelet.service
[Service]
Type=oneshot
%{ for image in prepull_images ~}
ExecStart=-/usr/bin/ctr --namespace k8s.io images pull ${image}
%{ endfor ~}
[Install]
WantedBy=kubelet.service
UNIT
systemctl enable odc-prepull.service
%{ endif ~}
