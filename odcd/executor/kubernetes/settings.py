"""The settings of the Kubernetes executor, read at the daemon's start; see odcd.settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from odcd.errors import BadRequest
from odcd.executor.kubernetes.images import check_image
from odcd.executor.kubernetes.naming import Namespaces
from odcd.variables import read_seconds, read_words

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
_DOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")
_TAINT = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_./]{0,251}[A-Za-z0-9/])?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    kubeconfig: Path | None = None
    """--kubeconfig of serve, --kubeconfig of doctor, ODC_KUBECONFIG. The kubeconfig of the cluster.
    Default: inside a pod that pod's own, else KUBECONFIG, else ~/.kube/config."""
    context: str | None = None
    """--context of serve, --context of doctor, ODC_CONTEXT. The context in the kubeconfig; default
    its current one."""
    namespace_batch: str = "gpu-batch"
    """ODC_NAMESPACE_BATCH. The namespace for jobs. Default gpu-batch."""
    namespace_dev: str = "gpu-dev"
    """ODC_NAMESPACE_DEV. The namespace for dev servers, and for jobs with EFA, which may lock
    memory. Default gpu-dev."""
    image: str | None = None
    """ODC_IMAGE. The image of jobs that name none, by digest or a fixed tag. Default none: they
    must name one."""
    dev_image: str | None = None
    """ODC_DEV_IMAGE. The same for dev servers. Default none: they must name one."""
    workspace_gib: int = 100
    """ODC_WORKSPACE_GIB. The size limit of a dev server's /workspace, in GiB; a dev server that
    exceeds it is ended. Default 100."""
    node_ports: bool = False
    """ODC_NODE_PORTS. on: a dev server's SSH is also reachable by a port of its nodes, not only
    through the daemon; off: it is not. Requires the component node-ports. Default off."""
    ccache_claim: str | None = None
    """ODC_CCACHE_CLAIM. A volume claim in the namespace of dev servers that many nodes may write
    to: it is /ccache_shared in all of them, a compiler cache for all users. Default none: each has
    its own, in /workspace."""
    ccache_gib: int = 250
    """ODC_CCACHE_GIB. The size limit of a shared compiler cache, in GiB. Default 250."""
    cluster_domain: str = "cluster.local"
    """ODC_CLUSTER_DOMAIN. The cluster's DNS domain. Default cluster.local."""
    pod_template: Path | None = None
    """ODC_POD_TEMPLATE. A YAML file with additions to every pod: volumes, volumeMounts, env,
    tolerations, nodeSelector, imagePullSecrets, labels, annotations. Default none. A volume is a
    claim, an emptyDir or nfs; the shipped admission policy refuses nfs."""
    dev_pod_template: Path | None = None
    """ODC_DEV_POD_TEMPLATE. The same for dev servers, in place of ODC_POD_TEMPLATE, whose
    tolerations and nodeSelector still apply. Users are root in dev servers: leave out file systems
    without root squash. Default ODC_POD_TEMPLATE."""
    group_file: Path | None = None
    """ODC_GROUP_FILE. A file in the format of /etc/group: jobs get the groups that name their user
    as a member. It is read again when it changes. Default none: jobs have the group of their
    submission only."""
    user_namespaces: bool = True
    """ODC_USER_NAMESPACES. on: dev servers get users of their own (hostUsers false) on nodes that
    support it. off: they do not. Default on."""
    tolerated: tuple[str, ...] = ()
    """ODC_TOLERATIONS. Keys of further taints that jobs tolerate, in addition to nvidia.com/gpu,
    vpc.amazonaws.com/efa and odc.dev/*. Default none."""
    node_grace: timedelta = timedelta(seconds=120)
    """ODC_NODE_GRACE_S. How long a node may be unreachable before its jobs fail or are requeued.
    Default 120 s."""
    fence: Literal["off", "stop", "terminate"] = "off"
    """ODC_FENCE. stop or terminate: the EC2 instance of a node that was unreachable for
    ODC_NODE_GRACE_S is stopped or terminated before its jobs run elsewhere, which requires
    ODC_AWS_REGION. off: nodes are not fenced. Default off."""
    schedule_budget: timedelta = timedelta(seconds=60)
    """ODC_SCHEDULE_S. How long a pod may wait for its node to accept it before its job is requeued.
    Default 60 s."""
    start_budget: timedelta = timedelta(seconds=1800)
    """ODC_START_S. How long a pod may then take until it runs, including the image pull. Default
    1800 s."""
    ready_budget: timedelta = timedelta(seconds=600)
    """ODC_READY_S. How long a dev server whose container runs may take until SSH answers. Default
    600 s."""
    disk_budget: timedelta = timedelta(seconds=600)
    """ODC_DISK_S. How much longer than ODC_SCHEDULE_S a dev server with a disk may wait for its
    node, while its volume is created. Default 600 s."""
    denied_budget: timedelta = timedelta(seconds=90)
    """ODC_DENIED_S. How long a registry must deny an image until the job that needs it fails; a
    sixth of it if two or more nodes are denied the same image. Default 90 s."""
    orphan_grace: timedelta = timedelta(seconds=30)
    """ODC_ORPHAN_S. How long a pod without a job may stay after it was first seen. Default 30 s."""
    output_bytes: int = 1024 * 1024
    """ODC_OUTPUT_BYTES. How many bytes of a member's output are kept when its pod is deleted: the
    beginning and the end. Default 1048576."""
    log_streams: int = 2000
    """ODC_LOG_STREAMS. How many members' logs odcd follows at the same time. Of a further member
    that writes more than containerLogMaxSize, only the part since kubelet's last rotation is kept.
    Default 2000."""
    quarantine: bool = True
    """ODC_QUARANTINE. on: nodes whose jobs fail far more often than those of their peers get no new
    jobs until a canary has succeeded there. off: no node is quarantined, and quarantined ones
    return. Default on."""

    @property
    def namespaces(self) -> Namespaces:
        return Namespaces(batch=self.namespace_batch, dev=self.namespace_dev)

    @property
    def phase_limits(self) -> dict[str, timedelta]:
        """The maximum time in each phase of a dev server."""
        scheduling = self.schedule_budget + self.disk_budget
        return {
            "disk": scheduling,
            "scheduling": scheduling,
            "init": self.start_budget,
            "image_pull": self.start_budget,
            "ssh": self.ready_budget,
            # Until the last of the other members, which goes through these phases one after
            # another.
            "gang_barrier": scheduling + self.start_budget + self.ready_budget,
        }


def read_kubernetes(
    kubeconfig: str | None, context: str | None, environment: Mapping[str, str]
) -> KubernetesSettings:
    """Raises BadRequest, naming the invalid variable. An empty variable, as a manifest may have, is
    not set."""
    environment = {name: text for name, text in environment.items() if text}
    kubeconfig = kubeconfig or environment.get("ODC_KUBECONFIG")
    image = environment.get("ODC_IMAGE")
    if image is not None:
        check_image(image, "ODC_IMAGE")
    dev_image = environment.get("ODC_DEV_IMAGE")
    if dev_image is not None:
        check_image(dev_image, "ODC_DEV_IMAGE")
    default = KubernetesSettings()
    return KubernetesSettings(
        kubeconfig=Path(kubeconfig).expanduser() if kubeconfig else None,
        context=context or environment.get("ODC_CONTEXT"),
        namespace_batch=_name(environment, "ODC_NAMESPACE_BATCH", default.namespace_batch),
        namespace_dev=_name(environment, "ODC_NAMESPACE_DEV", default.namespace_dev),
        image=image,
        dev_image=dev_image,
        workspace_gib=_amount(environment, "ODC_WORKSPACE_GIB", default.workspace_gib),
        node_ports=_switch(environment, "ODC_NODE_PORTS", default.node_ports),
        ccache_claim=_claim(environment),
        ccache_gib=_amount(environment, "ODC_CCACHE_GIB", default.ccache_gib),
        cluster_domain=_matched(
            environment, "ODC_CLUSTER_DOMAIN", default.cluster_domain, _DOMAIN, "a DNS domain"
        ),
        pod_template=_path(environment, "ODC_POD_TEMPLATE"),
        dev_pod_template=_path(environment, "ODC_DEV_POD_TEMPLATE"),
        group_file=_path(environment, "ODC_GROUP_FILE"),
        user_namespaces=_switch(environment, "ODC_USER_NAMESPACES", default.user_namespaces),
        tolerated=_taints(environment),
        node_grace=read_seconds(environment, "ODC_NODE_GRACE_S", default.node_grace),
        fence=_fence(environment),
        schedule_budget=read_seconds(environment, "ODC_SCHEDULE_S", default.schedule_budget),
        start_budget=read_seconds(environment, "ODC_START_S", default.start_budget),
        ready_budget=read_seconds(environment, "ODC_READY_S", default.ready_budget),
        disk_budget=read_seconds(environment, "ODC_DISK_S", default.disk_budget),
        denied_budget=read_seconds(environment, "ODC_DENIED_S", default.denied_budget),
        orphan_grace=read_seconds(environment, "ODC_ORPHAN_S", default.orphan_grace),
        output_bytes=_bytes(environment, "ODC_OUTPUT_BYTES", default.output_bytes),
        log_streams=_count(environment, "ODC_LOG_STREAMS", default.log_streams),
        quarantine=_switch(environment, "ODC_QUARANTINE", default.quarantine),
    )


def _name(environment: Mapping[str, str], name: str, default: str) -> str:
    return _matched(environment, name, default, _NAME, "a namespace's name")


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    text = environment.get(name)
    return Path(text).expanduser() if text else None


def _claim(environment: Mapping[str, str]) -> str | None:
    if "ODC_CCACHE_CLAIM" not in environment:
        return None
    return _matched(environment, "ODC_CCACHE_CLAIM", "ccache", _NAME, "a claim's name")


def _matched(
    environment: Mapping[str, str], name: str, default: str, form: re.Pattern[str], what: str
) -> str:
    text = environment.get(name, default)
    if not form.match(text):
        raise BadRequest(f'{name}="{text[:100]}" is not {what}', f"For example {default}.")
    return text


def _taints(environment: Mapping[str, str]) -> tuple[str, ...]:
    keys = tuple(read_words(environment, "ODC_TOLERATIONS"))
    for key in keys:
        if not _TAINT.match(key):
            raise BadRequest(
                f'ODC_TOLERATIONS: "{key}" is not the key of a taint', "For example dedicated."
            )
    return keys


def _switch(environment: Mapping[str, str], name: str, default: bool) -> bool:
    text = environment.get(name)
    if text is None:
        return default
    if text not in ("on", "off"):
        raise BadRequest(f'{name}="{text[:100]}" is neither on nor off', "Use on or off.")
    return text == "on"


def _fence(environment: Mapping[str, str]) -> Literal["off", "stop", "terminate"]:
    text = environment.get("ODC_FENCE", "off")
    if text not in ("off", "stop", "terminate"):
        raise BadRequest(
            f'ODC_FENCE="{text[:100]}" is not a way to fence nodes', "Use off, stop or terminate."
        )
    if text != "off" and "ODC_AWS_REGION" not in environment:
        raise BadRequest(
            f"ODC_FENCE={text} needs ODC_AWS_REGION", "Set it to the region of the nodes."
        )
    return text


def _amount(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name)
    if text is None:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise BadRequest(f'{name}="{text[:100]}" is not a number of GiB', "Give 1 to 100000.")
    return int(text)


def _bytes(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name)
    if text is None:
        return default
    if not text.isdecimal() or not 131_072 <= int(text) <= 100_000_000:
        raise BadRequest(f'{name}="{text}" is not a number of bytes', "Give 131072 to 100000000.")
    return int(text)


def _count(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name)
    if text is None:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise BadRequest(f'{name}="{text[:100]}" is not a number of logs', "Give 1 to 100000.")
    return int(text)
