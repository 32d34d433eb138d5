"""What a job in a pod is told of itself: as any job, but its hosts are pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from odcd.executor.environment import job_variables, member_variables
from odcd.executor.kubernetes.naming import host_domain, pod_name
from odcd.records.dispatch import Dispatch, Member

MASTER_PORT = 29500
HERE = frozenset({
    "PATH", "HOME", "SHELL", "TMPDIR", "PWD", "OLDPWD", "HOSTNAME", "SHLVL", "_",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV",
    "CONDA_PREFIX", "CONDA_EXE", "CONDA_PYTHON_EXE", "CONDA_DEFAULT_ENV", "CONDA_SHLVL",
    "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS",
    "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "XAUTHORITY", "TMUX", "TERMINFO",
})  # fmt: skip
"""Of the submitted environment, what names files and sockets of the machine it came from."""
DEVICES = ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
"""Given by the device plugin alone: by these a job would see GPUs that are not its own."""


def pod_environment(
    dispatch: Dispatch,
    member: Member,
    submitted: Mapping[str, str],
    *,
    cluster: str,
    namespace: str,
    cluster_domain: str,
    home: str,
    efa: bool,
) -> dict[str, str]:
    """SLURM_JOB_NODELIST and its like name the pods, whose names resolve; ODC_NODE the node."""
    domain = host_domain(namespace, cluster_domain)
    hosts = [pod_name(*dispatch.key, m.rank) for m in dispatch.members]
    seen = replace(
        dispatch,
        members=tuple(
            replace(m, node=host) for m, host in zip(dispatch.members, hosts, strict=True)
        ),
    )
    base = {
        name: value
        for name, value in submitted.items()
        if name not in HERE and name not in DEVICES and not name.startswith("SLURM_")
    }
    variables = {
        **base,
        **job_variables(
            seen,
            {**base, "PATH": "", "TMPDIR": "", "SHELL": "", "HOME": ""},
            cluster=cluster,
            master_addr=f"{hosts[0]}.{domain}",
        ),
        **member_variables(seen, seen.members[member.rank]),
        "MASTER_PORT": str(MASTER_PORT),
        "ODC_NODE": member.node,
        "ODC_PEERS": ",".join(f"{host}.{domain}" for host in hosts),
        "HOME": home,
    }
    for name in DEVICES:
        variables.pop(name, None)
    if not member.gpu_indexes:
        # Else an image that asks for all devices would get them.
        variables["NVIDIA_VISIBLE_DEVICES"] = "void"
    if efa:
        variables.setdefault("FI_PROVIDER", "efa")
        variables.setdefault("NCCL_SOCKET_IFNAME", "^lo,docker")
        # Not Mellanox's cards, which are the node's own; all others, across switches. Which of its
        # ways it takes, and whether devices read memory directly, it knows best.
        variables.setdefault("NCCL_IB_HCA", "^mlx5")
        variables.setdefault("NCCL_CROSS_NIC", "1")
    return variables
