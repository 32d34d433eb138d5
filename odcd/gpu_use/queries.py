"""The PromQL queries about GPUs, and how to read the results.

They use DCGM's own series in both label forms: the exporter's `pod` and `namespace` become
`exported_pod` and `exported_namespace` if the scrape does not honour its labels. A GPU that is
scraped twice counts once, with the higher value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from odcd.executor.kubernetes.naming import Namespaces
from odcd.gpu_use.prometheus import Sample
from odcd.records.gpu_use import AttemptUsage, GpuKey, GpuSample, UnmeasuredAttempt, uuid_of

UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
MEMORY, POWER = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
MAX_POINTS, COARSE_POINTS = 5_000, 500
"""The number of points at which a GPU's presence is tested, per attempt."""
LEAST_POINTS = 30
LOOKBACK_SCRAPES = 2
"""A gap of up to this many scrapes does not count as a gap."""
MAX_W, MAX_MIB = 5_000, 16 * 1024 * 1024
"""No GPU draws more power or has more memory: a higher value is DCGM's marker for "none", or an
error."""
_Gpus = dict[str, dict[str, float]]
"""By GPU or MIG instance: values by name."""
_POD = re.compile(r"odc-([0-9]{1,18})-([0-9]{1,9})-([0-9]{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time range of `length` that ends at `end`."""

    end: datetime
    length: timedelta

    @property
    def range(self) -> str:
        return f"[{_ms(self.length)}ms]"

    @property
    def at(self) -> str:
        return f"@ {self.end.timestamp():.3f}"


class Labels:
    """Selects the series of jobs' GPUs, and identifies the job of each.

    namespaces: of the pods; None: jobs are identified by the exporter's hpc_job. match: labels that
    all series of this cluster have.
    """

    def __init__(
        self, namespaces: Namespaces | None, match: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._namespaces = namespaces
        self._more = "".join(f',{name}="{value}"' for name, value in match)

    def of_attempt(self, job_id: int, attempt: int) -> list[str]:
        """The inner parts of the selectors, one per label form."""
        if self._namespaces is None:
            return [f'hpc_job="{job_id}"{self._more}']
        return self._pods(f"odc-{job_id}-{attempt}-[0-9]+")

    def of_all(self) -> list[str]:
        if self._namespaces is None:
            return [f'hpc_job=~"[0-9]+"{self._more}']
        return self._pods("odc-[0-9]+-[0-9]+-[0-9]+")

    def _pods(self, names: str) -> list[str]:
        assert self._namespaces is not None
        spaces = "|".join(sorted({self._namespaces.batch, self._namespaces.dev}))
        return [
            f'{prefix}namespace=~"{spaces}",{prefix}pod=~"{names}"{self._more}'
            for prefix in ("exported_", "")
        ]

    def key(self, labels: dict[str, str]) -> GpuKey | None:
        """The GPU and job of a series. An hpc_job does not include the attempt, which is 0."""
        uuid, instance = labels.get("UUID", ""), labels.get("GPU_I_ID", "")
        if not uuid:
            return None
        gpu = f"{uuid}/{instance}" if instance else uuid
        if self._namespaces is None:
            job = labels.get("hpc_job", "")
            # The exact text: 007 is not job 7.
            return GpuKey(int(job), 0, 0, gpu) if re.fullmatch("[1-9][0-9]{0,17}", job) else None
        for name in (labels.get("exported_pod", ""), labels.get("pod", "")):
            if found := _POD.fullmatch(name):
                return GpuKey(int(found[1]), int(found[2]), int(found[3]), gpu)
        return None


def ask_ended(
    labels: Labels, owed: Iterable[UnmeasuredAttempt], scrape: timedelta, *, coarse: bool = False
) -> str:
    """One expression for the GPUs of these attempts; each series has the figure and the attempt as
    labels.

    coarse: use samples at few points instead of all, for attempts with too many samples.
    """
    parts: list[str] = []
    for one in owed:
        window = Window(end=one.ended_at, length=one.duration)
        forms = labels.of_attempt(one.job_id, one.attempt)
        steps = f"[{_ms(one.duration)}ms:{_step_ms(one.duration, scrape, coarse)}ms] {window.at}"
        over = steps if coarse else f"{window.range} {window.at}"
        near = f"[{_ms(LOOKBACK_SCRAPES * scrape)}ms]"
        for figure, text in (
            ("util", _any(forms, f"avg_over_time({UTIL}{{%s}}{over})")),
            ("engine", _any(forms, f"avg_over_time({ENGINE}{{%s}}{over})")),
            ("memory", _any(forms, f"max_over_time({MEMORY}{{%s}}{over})")),
            ("energy", _any(forms, f"increase({ENERGY}{{%s}}{over})")),
            ("power", _any(forms, f"avg_over_time({POWER}{{%s}}{over})")),
            (
                "seen",
                " or ".join(
                    _any(
                        forms,
                        f"count_over_time(present_over_time({name}{{%s}}{near}){steps})",
                    )
                    for name in (UTIL, ENGINE)
                ),
            ),
        ):
            expression = f"max by (UUID, GPU_I_ID) ({text})"
            expression = _label(expression, "odc_figure", figure)
            parts.append(_label(expression, "odc_attempt", f"{one.job_id}-{one.attempt}"))
    return " or ".join(parts)


def read_ended(
    samples: Iterable[Sample],
    owed: Iterable[UnmeasuredAttempt],
    scrape: timedelta,
    *,
    coarse: bool = False,
) -> list[AttemptUsage]:
    """Read the result of ask_ended: one record for each attempt that was observed."""
    by_attempt: dict[str, _Gpus] = {}
    for sample in samples:
        labels = sample.labels
        uuid, instance = labels.get("UUID", ""), labels.get("GPU_I_ID", "")
        gpu = f"{uuid}/{instance}" if instance else uuid
        figures = by_attempt.setdefault(labels.get("odc_attempt", ""), {}).setdefault(gpu, {})
        figures[labels.get("odc_figure", "")] = sample.value
    found: list[AttemptUsage] = []
    for one in owed:
        gpus = by_attempt.get(f"{one.job_id}-{one.attempt}", {})
        gpus = _own(gpus, one.gpus)
        if gpus:
            found.append(_add_up(one, gpus, _points(one, scrape, coarse)))
    return found


def _own(gpus: _Gpus, count: int) -> _Gpus:
    """The GPUs that the attempt held, at most count cards.

    If the exporter reports a job without an attempt, an earlier attempt's GPU may still be within
    the lookback or the first sample. Such a GPU has no figure in this attempt's time, or was seen
    for the shortest time.
    """
    used = {
        gpu: figures
        for gpu, figures in gpus.items()
        # A GPU without a usage figure says nothing about usage.
        if "seen" in figures and ("util" in figures or "engine" in figures)
    }
    seen: dict[str, float] = {}
    for gpu, figures in used.items():
        card = uuid_of(gpu)
        seen[card] = max(figures["seen"], seen.get(card, 0.0))
    longest = sorted(seen, key=lambda card: (-seen[card], card))[:count]
    return {gpu: figures for gpu, figures in used.items() if uuid_of(gpu) in longest}


def _add_up(one: UnmeasuredAttempt, gpus: _Gpus, points: int) -> AttemptUsage:
    """points: the number of points at which a GPU's presence was tested."""
    held_s = one.duration.total_seconds()
    covered_gpu_s = busy_gpu_s = 0.0
    energy: list[float] = []
    memory: list[float] = []
    for figures in gpus.values():
        seen_s = held_s * min(1.0, figures["seen"] / points)
        ratio = ratio_of(figures.get("util"), figures.get("engine"))
        if ratio is None:
            continue
        covered_gpu_s += seen_s
        busy_gpu_s += ratio * seen_s
        joules = _joules(figures, held_s, seen_s)
        if joules is not None:
            energy.append(joules)
        if figures.get("memory", MAX_MIB) < MAX_MIB:
            memory.append(figures["memory"])
    return AttemptUsage(
        job_id=one.job_id,
        attempt=one.attempt,
        covered_s=min(held_s, covered_gpu_s / one.gpus),
        busy_gpu_s=busy_gpu_s,
        mem_peak_mib=math.ceil(max(memory)) if memory else None,
        energy_j=sum(energy) if energy else None,
        gpu_uuids=sorted({uuid_of(gpu) for gpu in gpus}),
    )


def _joules(figures: dict[str, float], held_s: float, seen_s: float) -> float | None:
    """Energy from the GPU's own counter, which also covers gaps; otherwise from its power."""
    counted = figures.get("energy", 0.0) / 1000
    if 0 < counted <= MAX_W * held_s:
        return counted
    return figures["power"] * seen_s if 0 <= figures.get("power", -1) <= MAX_W else None


def ratio_of(percent: float | None, engine: float | None) -> float | None:
    """Usage from 0 to 1: of the whole GPU, or of its engine where that is missing, as under MIG. An
    impossible value counts as missing."""
    if percent is not None and 0 <= percent <= 100:
        return percent / 100
    return engine if engine is not None and 0 <= engine <= 1 else None


def ask_live(labels: Labels, window: Window) -> str:
    """An expression for the GPUs of all jobs in the window; each series is labelled with figure,
    GPU and job. There are thousands of series, so each has only the labels it needs."""
    forms = labels.of_all()
    whose = "exported_pod, pod, hpc_job, UUID, GPU_I_ID"
    parts: list[str] = []
    for figure, function in (("mean", "avg_over_time"), ("peak", "max_over_time")):
        percent = _any(forms, f"{function}({UTIL}{{%s}}{window.range})")
        engine = _any(forms, f"{function}({ENGINE}{{%s}}{window.range})")
        # Same as ratio_of: the engine counts only where the percentage is missing.
        expression = f"(max by ({whose}) ({percent}) <= 100) / 100 or max by ({whose}) ({engine})"
        parts.append(_label(expression, "odc_figure", figure))
    expression = _any(forms, f"last_over_time({MEMORY}{{%s}}{window.range})")
    parts.append(_label(f"max by ({whose}, gpu, modelName) ({expression})", "odc_figure", "memory"))
    return " or ".join(parts)


def read_live(samples: Iterable[Sample], labels: Labels) -> list[GpuSample]:
    by_gpu: dict[GpuKey, dict[str, float]] = {}
    places: dict[GpuKey, tuple[int | None, str | None]] = {}
    for sample in samples:
        key = labels.key(sample.labels)
        if key is None:
            continue
        figures = by_gpu.setdefault(key, {})
        figure = sample.labels.get("odc_figure", "")
        figures[figure] = max(sample.value, figures.get(figure, sample.value))
        index = sample.labels.get("gpu", "")
        if re.fullmatch("[0-9]{1,4}", index):
            places[key] = int(index), sample.labels.get("modelName") or None
    found: list[GpuSample] = []
    for key, figures in by_gpu.items():
        mean, peak = figures.get("mean", -1.0), figures.get("peak", -1.0)
        if not (0 <= mean <= 1 and 0 <= peak <= 1):
            continue
        index, model = places.get(key, (None, None))
        memory = figures.get("memory", MAX_MIB)
        found.append(
            GpuSample(
                key=key, mean_ratio=mean, peak_ratio=peak, index=index, model=model,
                mem_used_mib=memory if memory < MAX_MIB else None,
            )
        )  # fmt: skip
    return found


def _any(forms: Sequence[str], text: str) -> str:
    return " or ".join(text.replace("%s", form) for form in forms)


def _label(text: str, name: str, value: str) -> str:
    return f'label_replace({text}, "{name}", "{value}", "", "")'


def _ms(length: timedelta) -> int:
    return max(1, round(length.total_seconds() * 1000))


def _step_ms(held: timedelta, scrape: timedelta, coarse: bool) -> int:
    """Half a scrape interval; more for long attempts, less for short ones."""
    held_s = held.total_seconds()
    step_s = min(scrape.total_seconds() / 2, held_s / LEAST_POINTS)
    max_points = COARSE_POINTS if coarse else MAX_POINTS
    return max(1, round(1000 * max(step_s, held_s / max_points)))


def _points(one: UnmeasuredAttempt, scrape: timedelta, coarse: bool) -> int:
    """The number of points: Prometheus evaluates at whole multiples of the step."""
    step_ms = _step_ms(one.duration, scrape, coarse)
    end_ms = round(one.ended_at.timestamp() * 1000)
    return max(1, end_ms // step_ms - (end_ms - _ms(one.duration)) // step_ms)
