"""The settings for measuring GPU usage; see odcd.settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from odcd.errors import BadRequest
from odcd.outbound import parse_address
from odcd.variables import read_seconds, read_words

SCRAPE = timedelta(seconds=30)
KEPT = timedelta(days=15)
IDLE_AFTER = timedelta(minutes=15)
IDLE_PERCENT = 5.0
MAX_KEPT_S = 10 * 365 * 86_400
_MATCH = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)=([^",\s{}\\]{1,200})')


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUseSettings:
    prometheus_url: str | None = None
    """ODC_PROMETHEUS_URL. A Prometheus that scrapes the DCGM exporters, http or https: GPU usage of
    jobs is read from there. Default none: on one machine it is read from NVML, on Kubernetes it is
    not measured."""
    prometheus_token: Path | None = None
    """ODC_PROMETHEUS_TOKEN_FILE. The file with the bearer token for it, read at every request.
    Default none."""
    prometheus_ca: Path | None = None
    """ODC_PROMETHEUS_CA. The file with the CA certificates to trust for it, PEM. Default the
    system's."""
    prometheus_match: tuple[tuple[str, str], ...] = ()
    """ODC_PROMETHEUS_MATCH. Labels of the series of this cluster's exporters, such as cluster=a, if
    one Prometheus has those of several clusters. Default none."""
    scrape: timedelta = SCRAPE
    """ODC_SCRAPE_S. How often Prometheus scrapes the exporters. Default 30 s."""
    kept: timedelta = KEPT
    """ODC_PROMETHEUS_KEEPS_S. How long Prometheus keeps its data: usage of jobs that ended earlier
    is not queried. Default 15 days."""
    idle_percent: float = IDLE_PERCENT
    """ODC_IDLE_GPU_PERCENT. An allocated GPU below this usage counts as idle. Default 5."""
    idle_after: timedelta = IDLE_AFTER
    """ODC_IDLE_GPU_S. A GPU that was idle for this long is listed as idle. Default 900 s."""
    jobs_dir: Path | None = None
    """ODC_DCGM_JOBS_DIR. On one machine: the folder from which the DCGM exporter reads job ids
    (--hpc-job-mapping-dir). Default none."""


def read_gpu_use(environment: Mapping[str, str], *, one_machine: bool) -> GpuUseSettings:
    """Raises BadRequest, naming the invalid variable. An empty variable, as a manifest may have, is
    not set."""
    environment = {name: text for name, text in environment.items() if text}
    jobs_dir = environment.get("ODC_DCGM_JOBS_DIR")
    if jobs_dir is not None and not one_machine:
        raise BadRequest(
            "ODC_DCGM_JOBS_DIR works only if odcd runs jobs on its own machine",
            "On Kubernetes, the exporter gets the pod of each GPU from the kubelet: leave the "
            "variable unset.",
        )
    url = environment.get("ODC_PROMETHEUS_URL")
    if url is not None:
        parse_address(url, "ODC_PROMETHEUS_URL", https_only=False)
        if one_machine and jobs_dir is None:
            raise BadRequest(
                "ODC_PROMETHEUS_URL: on one machine, Prometheus cannot identify jobs without "
                "ODC_DCGM_JOBS_DIR",
                "Name the folder in --hpc-job-mapping-dir of the DCGM exporter, or "
                "leave both out: NVML then measures the GPU usage of jobs.",
            )
    return GpuUseSettings(
        prometheus_url=url,
        prometheus_token=_path(environment, "ODC_PROMETHEUS_TOKEN_FILE"),
        prometheus_ca=_path(environment, "ODC_PROMETHEUS_CA"),
        prometheus_match=_matches(environment),
        scrape=read_seconds(environment, "ODC_SCRAPE_S", SCRAPE, 3600),
        kept=read_seconds(environment, "ODC_PROMETHEUS_KEEPS_S", KEPT, MAX_KEPT_S),
        idle_percent=_percent(environment),
        idle_after=read_seconds(environment, "ODC_IDLE_GPU_S", IDLE_AFTER),
        jobs_dir=_path(environment, "ODC_DCGM_JOBS_DIR"),
    )


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    text = environment.get(name)
    return Path(text).expanduser().absolute() if text else None


def _matches(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for word in read_words(environment, "ODC_PROMETHEUS_MATCH"):
        match = _MATCH.fullmatch(word)
        if match is None:
            raise BadRequest(
                f'ODC_PROMETHEUS_MATCH: "{word[:100]}" is not LABEL=VALUE', "For example cluster=a."
            )
        found.append((match[1], match[2]))
    return tuple(found)


def _percent(environment: Mapping[str, str]) -> float:
    text = environment.get("ODC_IDLE_GPU_PERCENT")
    if text is None:
        return IDLE_PERCENT
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise BadRequest(f'ODC_IDLE_GPU_PERCENT="{text}" is not a percentage', "Give 0 to 100.")
    return percent
