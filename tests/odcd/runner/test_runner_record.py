"""A region of a member's record is either complete or empty."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odcd.runner import record
from odcd.runner.members import Member, outcome
from odcd.runner.memory import Memory
from odcd.runner.record import Key


def test_each_region_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "1-2-3"
    fd = record.create(path, {"uid": 7})
    record.write(fd, record.BEGUN, {"pid": 12})
    record.write(fd, record.EXIT, {"e": "ended", "status": 9})
    assert record.is_held(path)
    os.close(fd)
    assert not record.is_held(path)
    assert record.read_file(path) == {
        "intent": {"uid": 7}, "begun": {"pid": 12}, "started": None, "control": None,
        "exit": {"e": "ended", "status": 9},
    }  # fmt: skip
    assert path.stat().st_size == record.SIZE


def test_a_torn_region_counts_as_unwritten(tmp_path: Path) -> None:
    path = tmp_path / "1-2-3"
    fd = record.create(path, {"uid": 7})
    record.write(fd, record.EXIT, {"e": "ended", "status": 9})
    os.pwrite(fd, b"8", record.EXIT[0] + 30)
    os.close(fd)
    assert record.read_file(path)["exit"] is None


def test_a_member_is_created_once(tmp_path: Path) -> None:
    os.close(record.create(tmp_path / "1-2-3", {}))
    with pytest.raises(FileExistsError):
        record.create(tmp_path / "1-2-3", {})


@pytest.mark.parametrize("character", ["x", '"', "\\", "\N{SNOWMAN}"])
def test_the_longest_failure_fits_its_region(character: str) -> None:
    cut = (character * 2000).encode()[: record.DETAIL_BYTES].decode(errors="ignore")
    answer = {"e": "failed", "detail": cut, "at": 1795226042.8546402}
    assert record.parse(record.encode(record.EXIT, answer)) == answer


@pytest.mark.parametrize("name", ["", "1", "1-2", "1-2-3-4", "a-b-c", "1-2-x", "1-2-3.new"])
def test_other_files_are_no_members(name: str) -> None:
    assert Key.parse(name) is None


def test_an_outcome_describes_how_the_member_ended() -> None:
    def ended(status: int, oom: int = 0) -> dict[str, object]:
        return {"e": "ended", "status": status, "oom": oom, "at": 5.0}

    def short(fact: dict[str, object]) -> tuple[object, ...]:
        return fact["kind"], fact.get("exit_code"), fact.get("signal"), fact["cause"]

    assert short(outcome(ended(0), None)) == ("exited", 0, None, None)
    assert short(outcome(ended(3 << 8), None)) == ("exited", 3, None, None)
    assert short(outcome(ended(9, oom=1), None)) == ("exited", None, 9, "oom")
    assert short(outcome(ended(9, oom=1), "timeout")) == ("exited", None, 9, "timeout")
    assert short(outcome(ended(0, oom=1), None)) == ("exited", 0, None, None)
    for passing, cause in ((True, "launch"), (False, "unknown")):
        failed = {"e": "failed", "detail": "x", "passing": passing, "at": 5.0}
        assert short(outcome(failed, None)) == ("start_failed", None, None, cause)


def test_the_control_record_of_any_member_fits() -> None:
    member = Member(Key(2**62, 2**31, 2**31), uid=2**32, state="running")
    member.ends_at = member.kill_at = 1795226042.8546402
    member.cause, member.stop_signal = "timeout", 64
    assert len(record.encode(record.CONTROL, member.control())) == record.CONTROL[1]


def test_ended_attempts_are_remembered_across_restarts_and_turnovers(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    assert memory.fresh
    for start in range(0, 120_000, 10_000):
        memory.remember_ended([(job, 2) for job in range(start + 1, start + 10_001)])
    again = Memory(tmp_path)
    assert not again.fresh
    for known in (memory, again):
        assert known.has_ended(120_000, 1)
        assert known.has_ended(120_000, 2)
        assert not known.has_ended(120_000, 3)
        assert known.has_ended(70_001, 2)
        assert not known.has_ended(1, 1), "kept forever, it would grow without limit"


def test_a_line_cut_off_by_a_full_disk_names_no_other_attempt(tmp_path: Path) -> None:
    Memory(tmp_path)
    (tmp_path / "ended").write_text("\n7 1\n12")
    memory = Memory(tmp_path)
    memory.remember_ended([(77, 1)])
    again = Memory(tmp_path)
    assert again.has_ended(7, 1)
    assert again.has_ended(77, 1)
    assert not again.has_ended(1277, 1)
