"""The parts of a pod that make it a dev server: its container, its volumes, and further objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from odcd.executor.kubernetes import greeting, naming
from odcd.executor.kubernetes.dev_server_files import FILES
from odcd.executor.kubernetes.launch import JOB, RUN, literal
from odcd.executor.kubernetes.objects import GPU
from odcd.executor.kubernetes.shares import Share
from odcd.records.dev_server import DevServerKeys
from odcd.records.dispatch import Dispatch, Member

CONTAINER = "gpu-dev"
USER = "dev"
HOME = greeting.HOME
WORKSPACE = greeting.WORKSPACE
PERSONAL = greeting.PERSONAL
CCACHE = greeting.CCACHE
KEYS = "/odc/keys"
SSH_PORT = 2222
KEY_MODE = 0o400
FILE_MODE = 0o444
CAPABILITIES = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
"""Root's default capabilities in a container, without NET_RAW and MKNOD: for sshd, sudo and package
managers."""
PROFILING = "nsight"
"""Label of nodes for profiling."""
NOT_PASSED = ("HOME", "USER", "LOGNAME", "PWD", "TMPDIR", "SHELL", "SLURM_SUBMIT_DIR")
"""Variables of a job that have other values in a dev server, or no meaning there."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DevServerStorage:
    """The storage of dev servers in addition to their disks; see KubernetesSettings."""

    workspace_gib: int = 100
    ccache_claim: str | None = None
    ccache_gib: int = 250
    disk_mbps: int = 125


def keeps_entrypoint(dispatch: Dispatch) -> bool:
    """Whether it runs its image's own entrypoint, without odc's SSH server."""
    return bool((dispatch.ask or {}).get("preserve_entrypoint"))


def profiles(dispatch: Dispatch, share: Share) -> bool:
    """Whether it needs SYS_ADMIN for Nsight's counters: only on nodes for profiling, if the user
    asked for one."""
    labels = (dispatch.ask or {}).get("labels")
    requested = isinstance(labels, dict) and labels.get(PROFILING) == "true"  # pyright: ignore[reportUnknownMemberType]
    return requested and GPU in share.limits


def ssh_keys(dispatch: Dispatch) -> list[str]:
    """Lines of authorized_keys."""
    lines = (dispatch.ask or {}).get("ssh_keys")
    return [str(line) for line in lines] if isinstance(lines, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def home_of(dispatch: Dispatch, member: Member) -> Json:
    """The volume of a member's home. The pod has no fsGroup, because kubelet would walk the whole
    disk at every start."""
    if dispatch.disk is None or member.rank != 0:
        return {"emptyDir": {}}
    return {"persistentVolumeClaim": {"claimName": dispatch.disk.claim}}


def environment_of(
    dispatch: Dispatch,
    member: Member,
    variables: Mapping[str, str],
    domain: str,
    storage: DevServerStorage,
) -> dict[str, str]:
    """variables: the same as for any job. domain: of the pods' host names."""
    hosts = [naming.pod_name(*dispatch.key, m.rank) for m in dispatch.members]
    cpus = str(max(1, member.cpus))
    environment = {name: value for name, value in variables.items() if name not in NOT_PASSED}
    environment |= {
        "ODC_CPUS": cpus,
        "OMP_NUM_THREADS": cpus,
        "MKL_NUM_THREADS": cpus,
        "OPENBLAS_NUM_THREADS": cpus,
        "NUMEXPR_MAX_THREADS": cpus,
        "MAX_JOBS": cpus,
        "CMAKE_BUILD_PARALLEL_LEVEL": cpus,
        # Not in the home, which may be a small disk.
        "HF_HOME": f"{WORKSPACE}/.cache/huggingface",
        "XDG_CACHE_HOME": f"{WORKSPACE}/.cache",
        "CCACHE_DIR": f"{WORKSPACE}/.cache/ccache",
    }
    if storage.ccache_claim is not None:
        environment |= {
            "CCACHE_DIR": CCACHE,
            # Otherwise each user's ccache would shrink the shared cache to 5 GB.
            "CCACHE_MAXSIZE": f"{storage.ccache_gib}G",
            "CCACHE_UMASK": "000",
        }
    if (dispatch.ask or {}).get("recreate_env"):
        environment["ODC_RECREATE_ENV"] = "1"
    if member.gpu_indexes:
        environment["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
    if len(hosts) > 1:
        environment |= {
            "MULTINODE_HOSTS": ",".join(f"{host}.{domain}" for host in hosts),
            "MULTINODE_PEER_PODS": ",".join(hosts),
            "MULTINODE_RANK": str(member.rank),
            "MULTINODE_SIZE": str(len(hosts)),
            "MULTINODE_HOSTFILE": "/etc/odc/hostfile",
        }
    return environment


def container_of(
    dispatch: Dispatch,
    share: Share,
    environment: Mapping[str, str],
    image: str,
    storage: DevServerStorage,
) -> Json:
    """Except for its name, like the container of any member; see odcd.executor.kubernetes.pods."""
    capabilities = [*CAPABILITIES, *(["IPC_LOCK"] if share.efa else [])]
    if profiles(dispatch, share):
        capabilities.append("SYS_ADMIN")
    container: Json = {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": key, "value": literal(value)} for key, value in environment.items()],
        "resources": {"requests": share.requests, "limits": share.limits},
        "securityContext": {
            # For sudo.
            "allowPrivilegeEscalation": True,
            "capabilities": {"drop": ["ALL"], "add": capabilities},
        },
        "volumeMounts": _mounts(dispatch, share, storage),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if not keeps_entrypoint(dispatch):
        container["command"] = ["/bin/sh", f"{JOB}/start"]
        container["readinessProbe"] = {
            "tcpSocket": {"port": SSH_PORT},
            "periodSeconds": 2,
            "timeoutSeconds": 2,
            "failureThreshold": 3,
        }
    return container


def security_context_of(dispatch: Dispatch) -> Json:
    """The pod's security context. An image that keeps its entrypoint also keeps its user."""
    root: Json = {} if keeps_entrypoint(dispatch) else {"runAsUser": 0, "runAsGroup": 0}
    return {**root, "seccompProfile": {"type": "RuntimeDefault"}}


def _mounts(dispatch: Dispatch, share: Share, storage: DevServerStorage) -> list[Json]:
    mounts: list[Json] = [
        {"name": "script", "mountPath": JOB, "readOnly": True},
        {"name": "run", "mountPath": RUN},
        {"name": "home", "mountPath": HOME},
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "workspace", "mountPath": WORKSPACE},
    ]
    if dispatch.personal is not None:
        mounts.append({"name": "personal", "mountPath": PERSONAL})
    if storage.ccache_claim is not None:
        mounts.append({"name": "ccache", "mountPath": CCACHE})
    if not keeps_entrypoint(dispatch):
        mounts.append({"name": "keys", "mountPath": KEYS, "readOnly": True})
    if share.hugepages_mib:
        mounts.append({"name": "hugepages", "mountPath": "/dev/hugepages"})
    return mounts


def volumes_of(dispatch: Dispatch, storage: DevServerStorage) -> list[Json]:
    """Volumes in addition to those of any member."""
    volumes: list[Json] = [
        {"name": "workspace", "emptyDir": {"sizeLimit": f"{storage.workspace_gib}Gi"}},
    ]
    for name, claim in (("personal", dispatch.personal), ("ccache", storage.ccache_claim)):
        if claim is not None:
            volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
    if not keeps_entrypoint(dispatch):
        named = {"secretName": naming.script_name(dispatch), "defaultMode": KEY_MODE}
        volumes.append({"name": "keys", "secret": named})
    return volumes


def files_of(dispatch: Dispatch, keys: DevServerKeys, storage: DevServerStorage) -> dict[str, str]:
    """The data of the ConfigMap at /odc/job, which all members share."""
    shared = storage.ccache_claim is not None
    lines = {
        "authorized_keys": ssh_keys(dispatch),
        "motd": greeting.motd(dispatch),
        "storage": greeting.storage(dispatch, 0, storage.disk_mbps, ccache=shared),
        "storage.others": greeting.storage(dispatch, 1, storage.disk_mbps, ccache=shared),
        "hostfile": [
            f"{naming.pod_name(*dispatch.key, m.rank)} slots={max(1, len(m.gpu_indexes))}"
            for m in dispatch.members
        ],
        "known_hosts": [f"odc {keys.host_public}"],
        "jupyter_wish": ["on" if (dispatch.ask or {}).get("jupyter") else "off"],
    }
    return {**FILES, **{name: "".join(f"{one}\n" for one in of) for name, of in lines.items()}}


def secret_of(dispatch: Dispatch, keys: DevServerKeys) -> dict[str, str]:
    """The data of the Secret at /odc/keys."""
    secret = {"host": keys.host_key, "jupyter": keys.jupyter_token}
    if len(dispatch.members) > 1:
        secret |= {"gang": keys.gang_key, "gang.pub": f"{keys.gang_public} odc\n"}
    return secret
