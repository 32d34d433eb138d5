"""Node lists: folding loses nothing, and what is malformed is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odcctl.exits import WrongUsage
from odcctl.text.hostlist import fold, unfold

NAMES = st.lists(
    st.from_regex(r"[a-z]{1,3}(-[a-z0-9]{1,3})?[0-9]{0,4}", fullmatch=True),
    max_size=30,
    unique=True,
)


@pytest.mark.long
@given(NAMES)
def test_a_folded_list_names_the_same_nodes(names: list[str]) -> None:
    assert sorted(unfold(fold(names))) == sorted(names)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["vm"], "vm"),
        (["gpu-03", "gpu-01", "gpu-02"], "gpu-[01-03]"),
        (["gpu-07", "gpu-03"], "gpu-[03,07]"),
        (["n8", "n9", "n10", "n11"], "n[8-11]"),
        (["n08", "n09", "n10", "n11"], "n[08-11]"),
        (["n1", "n01"], "n1,n01"),
        (["a1", "b1", "vm", "a2"], "a[1-2],b1,vm"),
    ],
)
def test_a_list_is_folded_as_slurm_does(names: list[str], folded: str) -> None:
    assert fold(names) == folded


def test_a_list_may_have_several_brackets() -> None:
    assert unfold("r[1-2]n[08-09],ws") == ["r1n08", "r1n09", "r2n08", "r2n09", "ws"]


@pytest.mark.parametrize("text", ["a[", "a]", "a[1-", "a[]", "a[x]", "a[3-1]", "a[1-999999999]"])
def test_a_malformed_list_is_refused(text: str) -> None:
    with pytest.raises(WrongUsage):
        unfold(text)
