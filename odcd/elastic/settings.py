"""The daemon's settings for elastic groups, read at its start; see odcd.settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from odcd.errors import BadRequest
from odcd.variables import read_seconds

EVERY = timedelta(seconds=15)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticSettings:
    elastic_cluster: str | None = None
    """ODC_ELASTIC_CLUSTER. Auto Scaling groups with the tags odc.dev/cluster=<this> and
    odc.dev/elastic=true get as many nodes as pending jobs need, on Kubernetes; requires
    ODC_AWS_REGION. Default none: odc changes no group."""
    elastic_every: timedelta = EVERY
    """ODC_ELASTIC_S. How often these groups are compared with the plan. Default 15 s."""


def read_elastic(
    environment: Mapping[str, str], region: str | None, *, kubernetes: bool
) -> ElasticSettings:
    """Raises BadRequest, naming the invalid variable. An empty variable is not set."""
    cluster = environment.get("ODC_ELASTIC_CLUSTER") or None
    if cluster is not None and not _NAME.fullmatch(cluster):
        raise BadRequest(
            f'ODC_ELASTIC_CLUSTER="{cluster[:100]}" is not the name of a cluster',
            "Give the value of the tag odc.dev/cluster of its Auto Scaling groups.",
        )
    if cluster is not None and region is None:
        raise BadRequest(
            f"ODC_ELASTIC_CLUSTER={cluster} needs ODC_AWS_REGION",
            "Set it to the region of the Auto Scaling groups.",
        )
    every = read_seconds(environment, "ODC_ELASTIC_S", EVERY, max_s=3600)
    return ElasticSettings(elastic_cluster=cluster if kubernetes else None, elastic_every=every)
