"""Past data of Prometheus: blocks made from text before it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from odcd.gpu_use.queries import ENERGY, ENGINE, MEMORY, POWER, UTIL
from tests.support.fakes.dcgm import COUNTERS, Gpu, dcgm_text
from tests.support.harness.prometheus import promtool

NOT_ASKED = COUNTERS.keys() - {UTIL, ENGINE, MEMORY, POWER, ENERGY}
"""Left out, because a long past has many samples."""


@dataclass(frozen=True, kw_only=True)
class Scraped:
    """One exporter from one time to another. cards_at returns the cards at this number of seconds;
    None: that scrape failed."""

    cards_at: Callable[[float], list[Gpu] | None]
    begin_s: float
    end_s: float
    every_s: float = 30
    honor_labels: bool = False
    without: tuple[str, ...] = ()


def make_blocks(data: Path, scraped: Iterable[Scraped]) -> None:
    """Write them into a Prometheus's storage, with the labels that a scrape would add."""
    series: dict[str, list[tuple[float, str]]] = {}
    for one in scraped:
        at = one.begin_s
        while at < one.end_s:
            cards = one.cards_at(at - one.begin_s)
            text = "" if cards is None else dcgm_text(cards, {*NOT_ASKED, *one.without})
            for line in text.splitlines():
                if line.startswith("#"):
                    continue
                name, _, value = line.rpartition(" ")
                series.setdefault(_labelled(name, one.honor_labels), []).append((at, value))
            at += one.every_s
    text = data.parent / "past.om"
    text.parent.mkdir(parents=True, exist_ok=True)
    with text.open("w") as file:
        # All of one metric stand together.
        for name in sorted(series, key=lambda name: (name.partition("{")[0], name)):
            for at, value in series[name]:
                file.write(f"{name} {value} {at:.3f}\n")
        file.write("# EOF\n")
    promtool("tsdb", "create-blocks-from", "openmetrics", text, data)


def _labelled(name: str, honor_labels: bool) -> str:
    """As a scrape of a target that has labels of its own: namespace, pod, container, job."""
    labelled = f'{name[:-1]},job="dcgm",instance="10.0.0.1:9400"'
    if not honor_labels:
        for label in ("namespace", "pod", "container"):
            labelled = labelled.replace(f',{label}="', f',exported_{label}="')
        labelled += ',namespace="monitoring",pod="dcgm-exporter-x",container="exporter"'
    elif 'namespace="' not in labelled:
        labelled += ',namespace="monitoring",pod="dcgm-exporter-x",container="exporter"'
    return labelled + "}"
