"""The colours of users can be told apart and read, in both themes, also with colour-blind eyes."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from odcd.page.files import assets
from odcd.page.hues import HUES

Colour = tuple[float, float, float]
# Machado, Oliveira and Fernandes (2009): full protanopia and deuteranopia, for linear RGB.
EYES: dict[str, tuple[Colour, Colour, Colour]] = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                 (-0.011820, 0.042940, 0.968881)),
}  # fmt: skip
DISTINCT = 0.065
"""In Oklab; two shades that a person can just tell apart side by side differ by some 0.02."""


def themes() -> dict[str, dict[str, str]]:
    """The variables of the style sheet, by theme. The dark ones are listed twice."""
    css = assets()["page.css"].plain.decode()
    found = [
        dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]+)", rule))
        for rule in re.findall(r":root[^{]*\{(.*?)\}", css, re.DOTALL)
    ]
    light, dark, switched = found
    assert dark == switched
    return {"light": light, "dark": {**light, **dark}}


def linear(text: str) -> Colour:
    digits = text.removeprefix("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))

    def of(c: float) -> float:
        return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4

    return of(red), of(green), of(blue)


def times(rows: tuple[Colour, Colour, Colour], by: Colour) -> Colour:
    one, two, three = (sum(a * b for a, b in zip(row, by, strict=True)) for row in rows)
    return one, two, three


def oklab(colour: Colour) -> Colour:
    red, green, blue = (min(max(c, 0), 1) for c in colour)
    cones = times(
        ((0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566),
         (0.0883024619, 0.2817188376, 0.6299787005)), (red, green, blue),
    )  # fmt: skip
    long, medium, short = (c ** (1 / 3) for c in cones)
    return times(
        ((0.2104542553, 0.793617785, -0.0040720468), (1.9779984951, -2.428592205, 0.4505937099),
         (0.0259040371, 0.7827717662, -0.808675766)), (long, medium, short),
    )  # fmt: skip


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2."""
    low, high = sorted(
        sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear(c), strict=True))
        for c in (one, other)
    )
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_any_two_colours_are_distinct(theme: str, eyes: str) -> None:
    found = themes()[theme]
    seen = [oklab(times(EYES[eyes], linear(found[f"f{n}"]))) for n in range(HUES)]
    assert min(math.dist(*pair) for pair in itertools.combinations(seen, 2)) >= DISTINCT


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_labels_on_bars_and_edges_of_cells_have_contrast(theme: str) -> None:
    found = themes()[theme]
    for n in range(HUES):
        assert contrast(found[f"f{n}"], found["on"]) >= 4.5, n
        assert contrast(found[f"l{n}"], found["card"]) >= 3, n
    assert contrast(found["bad"], found["card"]) >= 4.5
    assert contrast(found["soft"], found["card"]) >= 4.5
