from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odcd.errors import BadRequest, OdcError, TooLarge
from odcd.records.job import Selector
from odcd.slurm.hostlists import compress_hosts, expand_hosts
from odcd.slurm.lists import (
    RangeBudget,
    format_tasks,
    multirange,
    parse_array,
    parse_selector,
    split_selectors,
)
from odcd.slurm.sizes import format_mib, parse_mib


@pytest.mark.parametrize(
    ("text", "ranges", "count", "step", "throttle"),
    [
        ("0-15", ((0, 15),), 16, 1, None),
        ("7", ((7, 7),), 1, 1, None),
        ("1,3,5-7", ((1, 1), (3, 3), (5, 7)), 5, 1, None),
        ("0-10:5", ((0, 0), (5, 5), (10, 10)), 3, 5, None),
        ("1-7:2", ((1, 1), (3, 3), (5, 5), (7, 7)), 4, 2, None),
        ("0-99%4", ((0, 99),), 100, 1, 4),
        ("[0-3,9]%2", ((0, 3), (9, 9)), 5, 1, 2),
        ("5,1-3,2-4", ((1, 5),), 5, 1, None),
        ("3,3,3", ((3, 3),), 1, 1, None),
        ("0-999999", ((0, 999999),), 1_000_000, 1, None),
        ("2147483646", ((2147483646, 2147483646),), 1, 1, None),
    ],
)
def test_array_tasks_are_read_as_merged_ranges(
    text: str, ranges: tuple[tuple[int, int], ...], count: int, step: int, throttle: int | None
) -> None:
    array = parse_array(text)
    assert (array.ranges, array.count, array.step, array.throttle) == (
        ranges,
        count,
        step,
        throttle,
    )
    assert (array.min, array.max) == (ranges[0][0], ranges[-1][1])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ",",
            "a",
            "1-",
            "-1",
            "5-3",
            "1:2",
            "0-4:0",
            "1,,2",
            "0-4%",
            "0-4%0",
            "0-4%x",
            "%4",
            "[1",
        ),
        *("2147483647", "1_3", "0-4%1%2", "9" * 5000, "0-4%" + "9" * 5000),
    ],
)
def test_an_invalid_array_is_refused(text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_array(text)
    assert refused.value.hint
    assert len(refused.value.message) < 300


@pytest.mark.parametrize("text", ["0-99999999", "0-1000000", "0-2147483646:2", "0-40000:2"])
def test_an_array_that_is_too_large_is_refused_before_it_is_expanded(text: str) -> None:
    with pytest.raises(TooLarge):
        parse_array(text)


def test_too_many_separate_tasks_are_refused() -> None:
    with pytest.raises(TooLarge, match="10000"):
        parse_array(",".join(str(task) for task in range(0, 20_002, 2)))


def test_lists_of_one_request_share_a_budget_of_ranges() -> None:
    budget = RangeBudget(7)
    parse_array("0-8:2,20-40,30-50", budget)
    parse_array("1-100")
    with pytest.raises(TooLarge, match="more than 7 separate") as refused:
        parse_selector("7_[1-4]", budget)
    assert refused.value.hint
    parse_selector("7_*", budget)


def test_a_list_beyond_the_budget_is_refused_before_it_is_expanded() -> None:
    budget = RangeBudget(9_999)
    with pytest.raises(TooLarge, match="more than 9999"):
        parse_selector("1_[0-99999999:10001]", budget)
    parse_array(",".join(str(task) for task in range(0, 19_998, 2)), budget)


@given(st.sets(st.integers(0, 300), min_size=1), st.none() | st.integers(1, 50))
def test_printed_tasks_read_as_themselves(tasks: set[int], throttle: int | None) -> None:
    array = parse_array(",".join(map(str, tasks)))
    assert {t for first, last in array.ranges for t in range(first, last + 1)} == tasks
    again = parse_array(format_tasks(array.ranges, throttle))
    assert (again.ranges, again.throttle, again.count) == (array.ranges, throttle, len(tasks))


def test_ranges_are_written_as_postgresql_reads_them() -> None:
    assert multirange([(0, 9), (12, 12)]) == "{[0,10),[12,13)}"


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("7", Selector(job_id=7)),
        ("7_*", Selector(job_id=7)),
        ("7_[*]", Selector(job_id=7)),
        ("7_3", Selector(job_id=7, tasks="{[3,4)}")),
        ("7_[1-4,9]", Selector(job_id=7, tasks="{[1,5),[9,10)}")),
        ("9223372036854775807", Selector(job_id=9223372036854775807)),
    ],
)
def test_a_selector_names_a_job_an_array_or_elements(text: str, selector: Selector) -> None:
    assert parse_selector(text) == selector


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0",
        "-7",
        "7_",
        "7_x",
        "7_[",
        "7_[]",
        "7_1-4",
        "7.batch",
        "7+1",
        "9223372036854775808",
    ],
)
def test_an_invalid_job_selector_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_selector(text)


def test_commas_inside_brackets_do_not_part_selectors() -> None:
    assert split_selectors("7,8_[1,3-4],9_2") == ["7", "8_[1,3-4]", "9_2"]


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu[01-03,7],login", ["gpu01", "gpu02", "gpu03", "gpu7", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("n[8-11]-ib", ["n8-ib", "n9-ib", "n10-ib", "n11-ib"]),
        ("a,b,a", ["a", "b"]),
    ],
)
def test_a_hostlist_names_nodes_in_order_with_their_zeros(text: str, hosts: list[str]) -> None:
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize(
    "text", ["", "a,,b", "a[", "a[]", "a[3-1]", "a[x]", "a b", "a]", "a[[1]]", "ä"]
)
def test_an_invalid_hostlist_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        expand_hosts(text)


@pytest.mark.parametrize("text", ["n[0-999999999]", "n[0-999][0-999]", "n[0-9999],m[0-9999]"])
def test_a_hostlist_of_too_many_nodes_is_refused_before_it_is_expanded(text: str) -> None:
    with pytest.raises(TooLarge):
        expand_hosts(text)


HOSTS = st.builds(
    lambda prefix, number, width: f"{prefix}{number:0{width}}",
    st.sampled_from(["gpu", "gpu-h100-", "n1x", "a.b-"]),
    st.integers(0, 120),
    st.integers(1, 4),
) | st.sampled_from(["login", "head.example.org"])


@given(st.sets(HOSTS, min_size=1, max_size=40))
def test_compressed_hosts_expand_to_themselves(hosts: set[str]) -> None:
    assert set(expand_hosts(compress_hosts(hosts))) == hosts


def test_hosts_are_compressed_as_slurm_prints_them() -> None:
    names = ["gpu-h100-03", "gpu-h100-07", "n9", "n10", "n11", "login"]
    assert compress_hosts(names) == "gpu-h100-[03,07],login,n[9-11]"


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("512", 512), ("512M", 512), ("512MB", 512), ("2G", 2048), ("2gb", 2048), ("1T", 1048576),
        ("102400K", 100), ("1K", 1), ("0", 0), ("16GiB", 16384),
    ],
)  # fmt: skip
def test_memory_is_read_in_every_form_of_sbatch(text: str, mib: int) -> None:
    assert parse_mib(text) == mib


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "1P", "1 GB", "1e3", "9999999999T", "½"])
def test_an_invalid_memory_size_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_mib(text)


@given(st.integers(0, 2_000_000_000))
def test_a_printed_size_reads_as_itself(mib: int) -> None:
    assert parse_mib(format_mib(mib)) == mib


@given(st.text(max_size=40) | st.from_regex(r"[0-9a-c\[\],:%_*-]{0,25}", fullmatch=True))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    for parse in (parse_array, parse_selector, expand_hosts, parse_mib):
        with suppress(OdcError):
            parse(text)


def test_a_component_is_refused_with_the_job_to_name() -> None:
    with pytest.raises(BadRequest) as refused:
        parse_selector("33+1")
    assert refused.value.hint == "It is a component of a heterogeneous job: name job 33."
