"""What is the same in every command: columns, CSV, JSON errors, durations, ids, usage errors."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

from odcctl.cli.commands import Listing
from odcctl.cli.verbs import VERBS
from odcctl.reference import contexts
from odcctl.text.durations import for_daemon, seconds_of
from odcctl.text.tables import column_name, csv_text, select
from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import a_job, an_event, outcome
from tests.odcctl.peer import Peer, Reply, event_stream, problem

LISTS = {
    "queue", "history", "nodes", "list", "avail", "idle", "usage", "shares", "priority", "events",
    "plan", "account list", "user list", "qos list", "partition list", "policy list",
    "booking list", "licence list", "disk list", "disk strays", "disk import", "notify show",
    "cron",
}  # fmt: skip


def test_every_list_has_columns_and_csv() -> None:
    found = {
        context.command_path.removeprefix("odcctl ")
        for verb in VERBS
        for context in contexts(verb)
        if isinstance(context.command, Listing)
    }
    assert found == LISTS


def test_columns_are_chosen_by_name_and_in_that_order(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(7)], "next": None})
    table = odcctl("queue", "-o", "state,job")
    assert (table.code, table.out) == (0, "STATE    JOB\nPENDING  7\n")
    assert odcctl("queue", "--format", "job", "--no-header").out == "7\n"
    wrong = odcctl("queue", "-o", "colour")
    assert (wrong.code, wrong.out) == (2, "")
    assert 'no column "colour"; there are: job, name, user, partition' in wrong.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("queue --json -o job", "--format chooses columns of a table or CSV; json has none"),
        ("--json queue --format job", "json has none"),
        ("queue --output json --no-header", "--no-header is for a table or CSV"),
        ("partition list --output quiet -o name", "quiet has none"),
        ("partition create p --no-header", 'no option "--no-header"'),
        ("partition --no-header create p", 'no option "--no-header"'),
        ("partition create p -o name", 'no option "-o"'),
        ("partition create p --output csv", '--output must be table, json or quiet, not "csv"'),
        ("hold 7 --no-header", 'no option "--no-header"'),
    ],
)
def test_options_of_tables_are_refused_where_no_table_is_printed(
    peer: Peer, odcctl: Odcctl, line: str, message: str
) -> None:
    wrong = odcctl(*line.split())
    text = json.loads(wrong.err)["detail"] if "json" in line else wrong.err
    assert (wrong.code, wrong.out, message in text) == (2, "", True), wrong.err
    assert peer.requests == []


def test_ids_alone_have_no_header_to_leave_out(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(7)], "next": None})
    assert odcctl("queue", "--output", "quiet", "--no-header").out == "7\n"


def test_csv_is_read_back_as_it_was(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(7), a_job(8)], "next": None})
    done = odcctl("queue", "--output", "csv")
    rows = list(csv.DictReader(done.out.splitlines()))
    assert [row["job"] for row in rows] == ["7", "8"]
    assert rows[0]["state"] == "PENDING"
    assert odcctl("queue", "--output", "csv", "-o", "job", "--no-header").out == "7\n8\n"
    assert odcctl("show", "7", "--output", "csv").code == 2


def test_events_are_csv_line_by_line(peer: Peer, odcctl: Odcctl) -> None:
    events = [an_event(1, "submitted"), an_event(2, "started")]
    peer.on("GET", "/v1/events", lambda _: Reply(pieces=event_stream(events)))
    lines = odcctl("events", "--output", "csv").out.splitlines()
    assert lines[0] == "id,at,kind,job,node,actor,detail"
    assert [line.partition(",")[0] for line in lines[1:]] == ["1", "2"]


def test_values_with_commas_and_quotes_survive_csv() -> None:
    text = csv_text(("NAME", "NODES / WHY"), [("a,b", 'says "no"'), ("  deep", "")])
    assert list(csv.reader(text.splitlines())) == [
        ["name", "nodes_why"], ["a,b", 'says "no"'], ["deep", ""],
    ]  # fmt: skip
    assert column_name("WAIT FOR 8 H") == "wait_for_8_h"
    assert select(("A", "B"), [("1", "2")], "b,a") == (["B", "A"], [["2", "1"]])
    with pytest.raises(ValueError, match="there are: a, b"):
        select(("A", "B"), [], "c")


def test_ids_of_queue_are_plain_arguments(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [], "next": None})
    assert odcctl("queue", "17", "18_[1-3]", "-j", "19").code == 0
    assert peer.requests[-1].query["job"] == "17,18_[1-3],19"


def test_errors_are_json_with_json(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", problem(403, "Forbidden", "OD013", "no", "Ask."))
    refused = odcctl("queue", "--json")
    assert (refused.code, refused.out) == (1, "")
    error = json.loads(refused.err)
    assert (error["code"], error["detail"], error["hint"]) == ("OD013", "no", "Ask.")
    for argv in (["queue", "--json", "--bogus"], ["--json", "queue", "-t", "SLEEPING"],
                 ["--json", "quue"]):  # fmt: skip
        wrong = odcctl(*argv)
        error = json.loads(wrong.err)
        assert (wrong.code, error["title"], error["status"]) == (2, "WrongUsage", None)
        assert set(error) == {"type", "title", "status", "detail", "hint", "code"}
    away = odcctl("--json", "queue", ODC_HOME="/nowhere")
    assert (away.code, json.loads(away.err)["title"]) == (3, "Unreachable")


def test_each_refused_job_is_a_json_error(peer: Peer, odcctl: Odcctl) -> None:
    refused = outcome(8, "refused", code="OD013", message="job 8 belongs to bob", hint="Ask bob.")
    peer.on("POST", "/v1/jobs/hold", {"jobs": [outcome(7, "held"), refused]})
    done = odcctl("hold", "7", "8", "--json")
    error = json.loads(done.err)
    assert (done.code, len(json.loads(done.out)["jobs"])) == (1, 2)
    assert (error["code"], error["job_id"], error["hint"]) == ("OD013", 8, "Ask bob.")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800), ("90s", 90), ("45m", 2700), ("4h", 14_400), ("2d", 172_800), ("1w", 604_800),
        ("1h30m", 5400), ("1:30", 90), ("1:30:00", 5400), ("1-0", 86_400), ("1-12:30", 131_400),
        ("UNLIMITED", None), ("", None), ("4 h", None), ("-1", None),
    ],
)  # fmt: skip
def test_durations_have_one_spelling(text: str, seconds: int | None) -> None:
    assert seconds_of(text) == seconds
    if seconds is not None:
        assert seconds_of(for_daemon(text)) == seconds


def test_a_span_is_sent_as_slurm_writes_it(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("PATCH", "/v1/jobs/7", {"jobs": [outcome(7, "updated")]})
    for given, sent in (("4h", "4:00:00"), ("1-0", "1-0"), ("30", "30"), ("UNLIMITED",) * 2):
        odcctl("update", "7", "--time", given)
        assert peer.requests[-1].body == {"time_limit": sent}
    peer.on("PATCH", "/v1/qos/normal", {})
    odcctl("qos", "edit", "normal", "--grace", "90s", "--limit", "job.wall=2d")
    assert peer.requests[-1].body == {"grace": "0:01:30", "limits": {"job": {"wall": "48:00:00"}}}


def test_options_may_stand_before_an_action(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("PATCH", "/v1/nodes/a", {})
    assert odcctl("node", "--reason", "x", "drain", "a").code == 0
    assert peer.requests[-1].body == {"state": "DRAIN", "reason": "x"}


def test_sbatchs_options_pass_through_untouched(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", "/v1/submit-argv", {"id": 7})
    argv = ["-Jhello", "--json=x", "-N2", "--exclusive", "-h", "x.sh", "--", "--server", "a"]
    assert odcctl("--json", "submit", *argv).code == 0
    assert peer.requests[-1].body["argv"] == argv


def test_a_command_imports_only_its_own_module(environment: dict[str, str]) -> None:
    code = (
        "import sys; sys.argv = ['odcctl', 'queue']\n"
        "from odcctl.__main__ import main\nmain()\nprint(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    commands = {name for name in done.stdout.split() if name.startswith("odcctl.commands.")}
    assert commands == {"odcctl.commands.queue"}
