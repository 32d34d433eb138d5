"""The workload model of Lublin and Feitelson: arrival times, widths and run times of jobs.

Source: U. Lublin and D. G. Feitelson, "The Workload on Parallel Supercomputers: Modeling the
Characteristics of Rigid Jobs", Journal of Parallel and Distributed Computing 63(11), 2003; its
parameters for jobs of all types together.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate
from random import Random

# Width: one processor, otherwise 2 to a power drawn uniformly in two stages, mostly an integer.
SERIAL, POWER_OF_TWO = 0.244, 0.576
WIDTH_LOW, WIDTH_SPLIT_BELOW_TOP, WIDTH_FIRST_STAGE = 0.8, 2.5, 0.86

# The logarithm of a run time: one of two gamma distributions; wider jobs more often use the longer.
SHORT, LONG = (4.2, 0.94), (312.0, 0.03)
SHORT_SLOPE, SHORT_BASE = -0.0054, 0.78
MAX_LOG_RUN = 12.0

# The logarithm of the time between two arrivals, and their distribution over the half hours of a
# day.
GAP = (10.2303 * 1.0225, 0.4871)
MAX_LOG_GAP = 13.0
DAY = (8.1737, 3.9631)
HALF_HOUR_S, HALF_HOURS, DAY_BEGINS = 1800, 48, 11


def width(random: Random, processors: int) -> int:
    """The number of processors of a job on a machine with this many."""
    kind = random.random()
    top = math.log2(processors)
    if kind <= SERIAL or top < 1:
        return 1
    low = min(WIDTH_LOW, top)
    split = max((low + top) / 2, top - WIDTH_SPLIT_BELOW_TOP)
    power = (
        random.uniform(low, split)
        if random.random() < WIDTH_FIRST_STAGE
        else random.uniform(split, top)
    )
    if kind <= SERIAL + POWER_OF_TWO:
        power = math.floor(power + 0.5)
    return max(1, min(processors, math.floor(2**power + 0.5)))


def run_s(random: Random, processors: int) -> int:
    """The run time of a job of that width, in seconds."""
    short = max(0.0, min(1.0, SHORT_SLOPE * processors + SHORT_BASE))
    while True:
        log = random.gammavariate(*(SHORT if random.random() <= short else LONG))
        if log <= MAX_LOG_RUN:
            return max(1, int(math.exp(log)))


class Arrivals:
    """Arrival times. Arrivals are uniform in a virtual time ("own time") that runs faster during
    working hours, and on average one day per day."""

    def __init__(self) -> None:
        shares = [0.0] * HALF_HOURS
        for at in range(DAY_BEGINS, DAY_BEGINS + HALF_HOURS):
            shares[(at - 1) % HALF_HOURS] = _gamma_cdf(at + 0.5, *DAY) - _gamma_cdf(at - 0.5, *DAY)
        mean = sum(shares) / HALF_HOURS
        self._pace = [share / mean for share in shares]
        self._own = [0.0, *accumulate(pace * HALF_HOUR_S for pace in self._pace)]

    def draw(self, random: Random, count: int) -> list[float]:
        """The own times of this many arrivals; the first is 0."""
        gaps: list[float] = []
        while len(gaps) < count - 1:
            log = random.gammavariate(*GAP)
            if log <= MAX_LOG_GAP:
                gaps.append(math.exp(log))
        return list(accumulate(gaps, initial=0.0))

    def own(self, clock_s: float) -> float:
        """The own time at a moment, counted from midnight of the first day."""
        days, rest = divmod(clock_s, HALF_HOUR_S * HALF_HOURS)
        half_hour = int(rest // HALF_HOUR_S)
        within = rest - half_hour * HALF_HOUR_S
        return days * self._own[-1] + self._own[half_hour] + within * self._pace[half_hour]

    def clock(self, own_s: float) -> float:
        """The moment of an own time."""
        days, rest = divmod(own_s, self._own[-1])
        half_hour = min(HALF_HOURS, bisect_right(self._own, rest)) - 1
        within = (rest - self._own[half_hour]) / self._pace[half_hour]
        return (days * HALF_HOURS + half_hour) * HALF_HOUR_S + within


def _gamma_cdf(x: float, shape: float, scale: float) -> float:
    """The series of the incomplete gamma function; accurate for the x of a day."""
    x /= scale
    term = total = 1.0 / shape
    at = shape
    while term > total * 1e-12:
        at += 1.0
        term *= x / at
        total += term
    return total * math.exp(-x + shape * math.log(x) - math.lgamma(shape))
