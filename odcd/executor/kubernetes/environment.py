"""The environment of a job in a pod: the same as for any job, but its hosts are pods."""

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
"""Variables of the submitted environment that name files and sockets of the machine it came
from."""
DEVICES = ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
"""Only set by the device plugin: otherwise a job could see GPUs of other jobs."""


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
    """SLURM_JOB_NODELIST and similar variables name the pods, whose names resolve; ODC_NODE names
    the node."""
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
        # Otherwise an image that requests all devices would get them.
        variables["NVIDIA_VISIBLE_DEVICES"] = "void"
    if efa:
        variables.setdefault("FI_PROVIDER", "efa")
        variables.setdefault("NCCL_SOCKET_IFNAME", "^lo,docker")
        # Exclude Mellanox's cards, which belong to the node; use all others, across switches. NCCL
        # itself best chooses its transport, and whether devices read memory directly.
        variables.setdefault("NCCL_IB_HCA", "^mlx5")
        variables.setdefault("NCCL_CROSS_NIC", "1")
    return variables
