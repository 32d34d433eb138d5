"""What the Kubernetes executor is told at the daemon's start; see odcd.settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from odcd.errors import BadRequest
from odcd.executor.kubernetes.images import check_image
from odcd.executor.kubernetes.naming import Namespaces

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
_DOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")
_TAINT = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_./]{0,251}[A-Za-z0-9/])?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    kubeconfig: Path | None = None
    """--kubeconfig of serve, --kubeconfig of doctor. Of the cluster. Default: inside a pod that
    pod's own, else KUBECONFIG, else ~/.kube/config."""
    context: str | None = None
    """--context of serve, --context of doctor. Of the kubeconfig; default its current one."""
    namespace_batch: str = "gpu-batch"
    """ODC_NAMESPACE_BATCH. Where jobs run. Default gpu-batch."""
    namespace_dev: str = "gpu-dev"
    """ODC_NAMESPACE_DEV. Where jobs with EFA run, which may lock memory. Default gpu-dev."""
    image: str | None = None
    """ODC_IMAGE. Of jobs that name none, by digest or a fixed tag. Default none: they must."""
    cluster_domain: str = "cluster.local"
    """ODC_CLUSTER_DOMAIN. The cluster's DNS domain. Default cluster.local."""
    pod_template: Path | None = None
    """ODC_POD_TEMPLATE. A YAML file with what every pod gets beside: volumes, volumeMounts, env,
    tolerations, nodeSelector, imagePullSecrets, labels, annotations. Default none. The shipped
    admission policy lets in volume claims and no other kinds of volumes."""
    tolerated: tuple[str, ...] = ()
    """ODC_TOLERATIONS. Keys of more taints that jobs tolerate, beside nvidia.com/gpu,
    vpc.amazonaws.com/efa and odc.dev/*. Default none."""
    node_grace: timedelta = timedelta(seconds=120)
    """ODC_NODE_GRACE_S. How long a node may be away before its jobs fail or are requeued. Default
    120 s."""
    schedule_budget: timedelta = timedelta(seconds=60)
    """ODC_SCHEDULE_S. How long a pod may wait for its node to take it before its job is requeued.
    Default 60 s."""
    start_budget: timedelta = timedelta(seconds=1800)
    """ODC_START_S. How long it may then take until it runs, the pull of its image included. Default
    1800 s."""
    orphan_grace: timedelta = timedelta(seconds=30)
    """ODC_ORPHAN_S. How long a pod that no job has may stay, once it was seen. Default 30 s."""
    output_bytes: int = 1024 * 1024
    """ODC_OUTPUT_BYTES. How much of what a member wrote is kept when its pod goes: the beginning
    and the end. Default 1048576."""
    quarantine: bool = True
    """ODC_QUARANTINE. on: nodes whose jobs fail far more often than those of their peers take no
    more until a canary has succeeded there. off: none is, and those that were return. Default
    on."""

    @property
    def namespaces(self) -> Namespaces:
        return Namespaces(batch=self.namespace_batch, dev=self.namespace_dev)


def read_kubernetes(
    kubeconfig: str | None, context: str | None, environment: Mapping[str, str]
) -> KubernetesSettings:
    """Raises BadRequest naming the variable that is wrong."""
    image = environment.get("ODC_IMAGE") or None
    if image is not None:
        check_image(image, "ODC_IMAGE")
    template = environment.get("ODC_POD_TEMPLATE")
    default = KubernetesSettings()
    return KubernetesSettings(
        kubeconfig=Path(kubeconfig).expanduser() if kubeconfig else None,
        context=context,
        namespace_batch=_name(environment, "ODC_NAMESPACE_BATCH", default.namespace_batch),
        namespace_dev=_name(environment, "ODC_NAMESPACE_DEV", default.namespace_dev),
        image=image,
        cluster_domain=_matched(
            environment, "ODC_CLUSTER_DOMAIN", default.cluster_domain, _DOMAIN, "a DNS domain"
        ),
        pod_template=Path(template).expanduser() if template else None,
        tolerated=_taints(environment),
        node_grace=_seconds(environment, "ODC_NODE_GRACE_S", default.node_grace),
        schedule_budget=_seconds(environment, "ODC_SCHEDULE_S", default.schedule_budget),
        start_budget=_seconds(environment, "ODC_START_S", default.start_budget),
        orphan_grace=_seconds(environment, "ODC_ORPHAN_S", default.orphan_grace),
        output_bytes=_bytes(environment, "ODC_OUTPUT_BYTES", default.output_bytes),
        quarantine=_switch(environment, "ODC_QUARANTINE", default.quarantine),
    )


def _name(environment: Mapping[str, str], name: str, default: str) -> str:
    return _matched(environment, name, default, _NAME, "a namespace's name")


def _matched(
    environment: Mapping[str, str], name: str, default: str, form: re.Pattern[str], what: str
) -> str:
    text = environment.get(name) or default
    if not form.match(text):
        raise BadRequest(f'{name}="{text[:100]}" is not {what}', f"For example {default}.")
    return text


def _taints(environment: Mapping[str, str]) -> tuple[str, ...]:
    keys = tuple(re.findall(r"[^,\s]+", environment.get("ODC_TOLERATIONS", "")))
    for key in keys:
        if not _TAINT.match(key):
            raise BadRequest(
                f'ODC_TOLERATIONS: "{key}" is not the key of a taint', "For example dedicated."
            )
    return keys


def _seconds(environment: Mapping[str, str], name: str, default: timedelta) -> timedelta:
    text = environment.get(name)
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise BadRequest(f'{name}="{text}" is not a number of seconds', "Give 1 to 86400.")
    return timedelta(seconds=seconds)


def _switch(environment: Mapping[str, str], name: str, default: bool) -> bool:
    text = environment.get(name)
    if not text:
        return default
    if text not in ("on", "off"):
        raise BadRequest(f'{name}="{text[:100]}" is neither on nor off', "Say on or off.")
    return text == "on"


def _bytes(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name)
    if not text:
        return default
    if not text.isdecimal() or not 131_072 <= int(text) <= 100_000_000:
        raise BadRequest(f'{name}="{text}" is not a number of bytes', "Give 131072 to 100000000.")
    return int(text)
