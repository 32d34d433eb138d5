"""odcd simulate --history and odcd history export --anonymise, as an operator types them."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odcd.__main__ import DONE, REFUSED, USAGE, main
from tests.odcd.simulate.site.days import quiet_days
from tests.support.harness.database import TestServer

ALL = "3600d"
NAMES = ("ann", "bob", "eve", "urgent", "scavenger", "h0", "l1", "train", "/tmp", "true")


@pytest.fixture(scope="module")
def history(postgres_server: TestServer) -> Iterator[str]:
    """The DSN of a queue with a short history."""
    dsn = postgres_server.clone()
    quiet_days(dsn, seed=4, steps=40)
    yield dsn
    postgres_server.drop(dsn)


def test_an_anonymous_trace_has_no_names_and_is_always_the_same(
    history: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--anonymise", "--before", "2026-03-03", "--last", "2d", "--dsn", history]
    one, two = tmp_path / "one.json.gz", tmp_path / "two.json"
    for path in (one, two):
        assert main(["history", "export", str(path), *argv]) == DONE
    output = capsys.readouterr().out
    assert "left out: scripts, environments, arguments, paths" in output
    data = gzip.decompress(one.read_bytes())
    assert data == two.read_bytes()
    words = set(data.decode().replace('"', " ").split())
    assert words.isdisjoint(NAMES)
    found = json.loads(data)
    assert found["start"].startswith("2026-01-01")
    assert {row["name"] for row in found["tables"]["node"]} == {f"node{n}" for n in range(1, 10)}
    assert {job["user"] for job in found["jobs"]} <= {"user1", "user2", "user3"}


@pytest.mark.long
def test_a_history_and_its_anonymous_trace_are_replayed(
    history: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, trace = tmp_path / "jobs.csv", tmp_path / "site.json"
    argv = ["--history", ALL, "--dsn", history]
    assert main(["simulate", *argv, "--out", str(out)]) == DONE
    text = capsys.readouterr().out
    assert "scenario  the site's own settings" in text
    assert "USER" in text
    assert "CHANGED" not in text
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert rows
    assert set(rows[0]) >= {"real_start", "replayed_start"}

    assert (
        main(["history", "export", str(trace), "--anonymise", "--last", ALL, "--dsn", history]) == 0
    )
    capsys.readouterr()
    changes = ["--add", "h100:8x2", "--remove", "node1", "--policy", "wfp3"]
    assert main(["simulate", str(trace), *changes, "--json"]) == DONE
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"] == len(rows)
    assert set(found["waits"]) == {"real", "replayed", "changed"}
    assert found["scenario"] == "policy wfp3, add h100:8x2, remove node1"


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["--history", "soon"], USAGE, '"soon"'),
        (["--history", "1s"], USAGE, "is not between one minute and ten years"),
        (["--history", "60d", "t.swf"], USAGE, "replays the jobs of the database"),
        (["--history", ALL, "--shake", "2"], USAGE, "--shake is not for a site's history"),
        (["--history", ALL, "--cluster", "2x8"], USAGE, "--cluster is not for a site's history"),
        (["--history", ALL, "--policy", "odc,fifo"], USAGE, "replayed under one policy"),
        (["--history", "1d"], USAGE, "no job started between"),
        (["--history", ALL, "--remove", "x[1-2]"], USAGE, "node x1, x2 does not exist"),
        (["--history", ALL, "--remove", "h[0-"], USAGE, "is not a node name"),
        (["--history", ALL, "--remove", "c0,h[0-5],l[0-1]"], USAGE, "no node is left"),
        (["--history", ALL, "--add", "h100:8"], USAGE, "is not a type and number of nodes"),
        (["--history", ALL, "--add", "h9:8x4"], USAGE, 'GPU type "h9" does not exist'),
        (["--history", ALL, "--policy", "lifo"], USAGE, 'policy "lifo" does not exist'),
        (["--history", ALL, "--set", "gpus=1"], USAGE, "is not a limit or a value of a QOS"),
        (["--history", ALL, "--set", "qos:x:priority=1"], USAGE, 'qos "x" does not exist'),
        (["--history", ALL, "--set", "qos:normal:user:gpus=few"], USAGE, "is not a whole number"),
        (["--history", ALL, "--set", "qos:normal:hour:gpus=2"], USAGE, "no such limit"),
    ],
    ids=lambda value: None if isinstance(value, str | int) else "-".join(value)[:50],
)
def test_wrong_scenarios_are_refused_before_a_replay(
    history: str, argv: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *argv, "--dsn", history]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (
            ["simulate", "philly-sample", "--add", "h100:8x4"],
            USAGE,
            "--add is for a site's history",
        ),
        (
            ["simulate", "philly-sample", "--home", "/x"],
            USAGE,
            "--home and --dsn are for --history",
        ),
        (["simulate", "--history", "1d", "--dsn", "postgresql://127.0.0.1:1/x"], 1, "reached"),
        (["simulate", "--history", "1d", "--home", "{tmp}"], REFUSED, "has no queue"),
        (["history", "export", "{tmp}/a.txt", "--anonymise"], USAGE, "End it in .json"),
        (["history", "export", "{tmp}/a.json", "--anonymise", "--ids", "1-2"], USAGE, "--ids"),
        (["history", "export", "{tmp}", "--last", "3d"], USAGE, "--last is for --anonymise"),
        (["simulate", "{tmp}/bad.json"], USAGE, "is not a site's history"),
        (["simulate", "{tmp}/new.json"], USAGE, "has an unknown format"),
    ],
    ids=lambda value: None if isinstance(value, str | int) else "-".join(value)[:50],
)
def test_bad_input_is_refused(
    tmp_path: Path, argv: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.json").write_text('{"format": 1, "jobs": 3}')
    (tmp_path / "new.json").write_text('{"format": 2}')
    assert main([word.format(tmp=tmp_path) for word in argv]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err + output.out
