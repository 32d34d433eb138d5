"""A log line: an event and its facts on one line, whatever they contain."""

from __future__ import annotations

import json
import logging
import sys

from odcd.logs import JsonFormatter, TextFormatter


def record(message: str, **facts: object) -> logging.LogRecord:
    made = logging.makeLogRecord(
        {"name": "odcd.loops.planner", "levelno": 20, "levelname": "INFO", "msg": message, **facts}
    )
    made.created = 1_893_456_000.25
    return made


def test_an_event_with_its_facts_is_one_line() -> None:
    line = TextFormatter().format(record("plan.done", dispatches=3, node="n1"))
    assert line == "2030-01-01T00:00:00.250Z INFO plan.done dispatches=3 node=n1"


def test_a_fact_with_spaces_quotes_or_lines_stays_one_fact() -> None:
    line = TextFormatter().format(record("job.failed", why='it said "no"\nand left', empty=""))
    assert line.endswith(r'job.failed why="it said \"no\"\nand left" empty=""')


def test_a_traceback_is_folded_into_the_line() -> None:
    try:
        raise ValueError("bad")
    except ValueError:
        failed = record("plan.failed", exc_info=sys.exc_info())
    line = TextFormatter().format(failed)
    assert "\n" not in line
    assert "ValueError: bad" in line


def test_as_json_every_fact_is_a_key() -> None:
    line = json.loads(JsonFormatter().format(record("plan.done", dispatches=3)))
    assert line == {
        "at": "2030-01-01T00:00:00.250Z",
        "level": "INFO",
        "event": "plan.done",
        "logger": "odcd.loops.planner",
        "dispatches": 3,
    }
