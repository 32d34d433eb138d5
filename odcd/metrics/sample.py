"""Metrics of the cluster at one moment: a prometheus_client collector, and the rendered text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from odcd.metrics.families import CLUSTER, JOB_INFO, Family

Row = tuple[str, Sequence[str], float]
"""The sample's name, its label values, its value."""
Encoder = Callable[[Collector], bytes]

END = b"# EOF\n"
MAX_FORMATS = 8
"""More than there are: see odcd.metrics.process.negotiate."""


class Cluster(Collector):
    """A family without rows is exported with only its help text and type."""

    def __init__(self, rows: Iterable[Row], catalogue: Sequence[Family] = CLUSTER) -> None:
        """Raises KeyError for a row that belongs to no family, ValueError if its labels do not
        match the family."""
        self._metrics = [_metric(family) for family in catalogue]
        places = {
            name: (metric, family)
            for metric, family in zip(self._metrics, catalogue, strict=True)
            for name in family.samples
        }
        for name, values, value in rows:
            metric, family = places[name]
            names = (*family.labels, "le") if name.endswith("_bucket") else family.labels
            labels = dict(zip(names, values, strict=True))
            if "le" in labels:
                labels["le"] = floatToGoString(float(labels["le"]))
            metric.add_sample(name, labels, value)
        for metric, family in zip(self._metrics, catalogue, strict=True):
            if family.kind == "histogram":
                # Buckets in ascending order, then count and sum: OpenMetrics requires them
                # together.
                metric.samples.sort(key=lambda sample: _order(sample.name, sample.labels))
            elif len(metric.samples) > 1:
                metric.samples.sort(key=lambda sample: list(sample.labels.values()))

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics


class Sample:
    """A Cluster that is rendered once per format, on first use."""

    def __init__(self, rows: Sequence[Row], job_info: str) -> None:
        """job_info: the lines of odcd_job_info."""
        self._cluster = Cluster(rows)
        self._job_info = job_info.encode()
        self._rendered: dict[str, bytes] = {}

    def render(self, encoder: Encoder, content_type: str) -> bytes:
        """Render it without the end marker of OpenMetrics."""
        found = self._rendered.get(content_type)
        if found is None:
            info_lines = encoder(_Only(_metric(JOB_INFO))).removesuffix(END) + self._job_info
            found = encoder(self._cluster).removesuffix(END) + info_lines
            if len(self._rendered) < MAX_FORMATS:
                self._rendered[content_type] = found
        return found


class _Only(Collector):
    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


def _metric(family: Family) -> Metric:
    name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
    return Metric(name, family.text, family.kind)


def _order(name: str, labels: Mapping[str, str]) -> tuple[list[str], int, float]:
    part = ("_bucket", "_count", "_sum").index(name[name.rindex("_") :])
    of = [value for label, value in labels.items() if label != "le"]
    return of, part, float(labels.get("le", 0))
