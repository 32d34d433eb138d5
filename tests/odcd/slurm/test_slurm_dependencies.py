from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odcd.errors import BadDependency, NotImplementedYet, OdcError, TooLarge
from odcd.slurm.dependencies import KINDS, Dependency, Term, format_dependency, parse_dependency


@pytest.mark.parametrize(
    ("text", "any_", "terms"),
    [
        ("afterok:7", False, [Term(kind="afterok", target_id=7)]),
        ("afterok:7_3", False, [Term(kind="afterok", target_id=7, target_task=3)]),
        ("afterany:7_*", False, [Term(kind="afterany", target_id=7)]),
        (
            "afterok:7:8",
            False,
            [Term(kind="afterok", target_id=7), Term(kind="afterok", target_id=8)],
        ),
        (
            "afterok:7,8",
            False,
            [Term(kind="afterok", target_id=7), Term(kind="afterok", target_id=8)],
        ),
        (
            "after:5+10:6,singleton",
            False,
            [
                Term(kind="after", target_id=5, delay_s=600),
                Term(kind="after", target_id=6),
                Term(kind="singleton"),
            ],
        ),
        (
            "AfterNotOk:1?aftercorr:2",
            True,
            [Term(kind="afternotok", target_id=1), Term(kind="aftercorr", target_id=2)],
        ),
        ("singleton", False, [Term(kind="singleton")]),
    ],
)
def test_a_dependency_is_read_as_sbatch_reads_it(text: str, any_: bool, terms: list[Term]) -> None:
    assert parse_dependency(text) == Dependency(text=text, any=any_, terms=tuple(terms))


@pytest.mark.parametrize(
    "text",
    [
        *("", "7", "afterok", "afterok:", "afterok:x", "afterok:7:", "afterok:0", "before:7"),
        *("singleton:7", "singleton,7", "afterok:7+5", "after:7+x", "after:7+99999999"),
        *("afterok:7_", "afterok:7_[1-3]", "afterok:99999999999999999999", "afterok:7_2147483647"),
        *("afterok:7,afterany:8?singleton", "afterok:7,,8", "afterok:" + "9" * 5000),
    ],
)
def test_an_invalid_dependency_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(BadDependency) as refused:
        parse_dependency(text)
    assert text[:50] in refused.value.message


def test_mixing_all_and_any_names_both() -> None:
    with pytest.raises(BadDependency, match='mixes "," and "\\?"'):
        parse_dependency("afterok:1,afterok:2?afterok:3")


def test_kinds_of_slurm_that_odc_has_not_are_refused_as_not_yet() -> None:
    with pytest.raises(NotImplementedYet, match="expand"):
        parse_dependency("expand:7")


def test_a_dependency_on_too_many_jobs_is_refused() -> None:
    with pytest.raises(TooLarge):
        parse_dependency("afterok:" + ":".join(map(str, range(1, 10_002))))


TERMS = st.sampled_from(KINDS).flatmap(
    lambda kind: (
        st.just(Term(kind="singleton"))
        if kind == "singleton"
        else st.builds(
            Term,
            kind=st.just(kind),
            target_id=st.integers(1, 2**63 - 1),
            target_task=st.none() | st.integers(0, 2**31 - 2),
            delay_s=st.integers(0, 1000).map(lambda m: 60 * m) if kind == "after" else st.just(0),
        )
    )
)


@given(st.lists(TERMS, min_size=1, max_size=8), st.booleans())
def test_a_printed_dependency_reads_as_itself(terms: list[Term], any_: bool) -> None:
    any_ = any_ and len(terms) > 1
    printed = format_dependency(Dependency(text="", any=any_, terms=tuple(terms)))
    assert parse_dependency(printed) == Dependency(text=printed, any=any_, terms=tuple(terms))


@given(
    st.text(max_size=40) | st.from_regex(r"(after|afterok|singleton|[:,?+_0-9])*", fullmatch=True)
)
def test_any_text_is_a_dependency_or_refused(text: str) -> None:
    with suppress(OdcError):
        parse_dependency(text)
