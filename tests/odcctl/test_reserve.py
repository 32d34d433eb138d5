"""reserve: what is sent, what is asked, what is seen until it is active, and how it ends."""

from __future__ import annotations

import json
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.odcctl.conftest import Golden, Odcctl, interrupt, send
from tests.odcctl.objects import (
    a_cpu_type,
    a_reservation,
    a_type,
    an_event,
    availability,
    disks,
    some_disks,
)
from tests.odcctl.peer import Peer, Reply, Request, event_stream, problem
from tests.odcctl.test_terminal import Terminal, terminal

__all__ = ["terminal"]

PATH = "/v1/reservations"
NOT_YET = problem(501, "NotImplementedYet", "OD016", "Jupyter is not started yet", "Leave it out.")


@pytest.fixture
def dev_server(peer: Peer) -> DevServer:
    return DevServer(peer)


class DevServer:
    """Reservation 12 as the daemon tells it, at every look one step further."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.will(a_reservation(12, "pending"), a_reservation(12))
        peer.on("GET", "/v1/jobs/12/events",
                lambda _: Reply(pieces=event_stream([an_event(1, "submitted", job_id=12)],
                                                    peer.stopping)))  # fmt: skip
        peer.on("POST", PATH, self._post)
        peer.on("GET", "/v1/availability", availability(a_type(), a_type("l4", 0), a_cpu_type()))
        peer.on("GET", "/v1/disks", disks(default_gib=None))
        peer.on("GET", f"/v1/builds/{'0' * 64}", problem(404, "UnknownBuild", "OD038", "none", ""))
        self.jupyter = False

    def will(self, *steps: dict[str, Any]) -> None:
        self.peer.on("GET", f"{PATH}/12", *steps)

    def _post(self, request: Request) -> Reply:
        if request.body.get("gpus") == 16 and not request.body.get("distributed"):
            message = "16 GPUs of type h100 need 2 nodes"
            return problem(400, "BadRequest", "OD010", message, "Add --distributed.")
        if request.query.get("dry_run"):
            if request.body.get("jupyter") and not self.jupyter:
                return NOT_YET
            return Reply({"text": "it would start at once on gpu-01", "start_at": None})
        return Reply(a_reservation(12, "pending"), status=201)

    @property
    def sent(self) -> dict[str, Any]:
        *refused, made = [one for one in self.peer.requests_to(PATH) if "dry_run" not in one.query]
        assert [one.body.get("distributed") for one in refused] in ([], [None])
        assert made.headers["idempotency-key"]
        return made.body


OPTIONS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "nothing": ([], {}),
    "short": (["-t", "h100", "-g", "2", "-h", "0.5", "-n", "debug", "-d", "-l", "nsight=true"],
              {"gpu_type": "h100", "gpus": 2, "hours": 0.5, "name": "debug", "distributed": True,
               "labels": {"nsight": "true"}}),
    "long": (["--gpu-type=h100", "--gpus=0", "--hours=24", "--disk=my_disk-1", "--recreate-env",
              "--jupyter", "--account=a", "--qos=q", "--partition=p"],
             {"gpu_type": "h100", "gpus": 0, "hours": 24.0, "disk": "my_disk-1", "jupyter": True,
              "recreate_env": True, "account": "a", "qos": "q", "partition": "p"}),
    "no disk": (["--no-persist", "--disk", "none"], {"disk": "none", "no_persist": True}),
    "image": (["--dockerimage", "pytorch:2", "--preserve-entrypoint"],
              {"image": "pytorch:2", "preserve_entrypoint": True}),
    "five minutes": (["-h", "0.0833"], {"hours": 0.0833}),
    "labels": (["-l", "a=b", "--node-label", "c/d.e=f=g"], {"labels": {"a": "b", "c/d.e": "f=g"}}),
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIONS)
def test_only_the_given_options_are_sent_once(
    dev_server: DevServer, odcctl: Odcctl, case: str
) -> None:
    """CLI-05 to CLI-11, CLI-14, CLI-15: without a terminal nothing is asked (CLI-16)."""
    options, body = OPTIONS[case]
    done = odcctl("reserve", *options)
    assert (done.code, dev_server.sent) == (0, body)
    assert dev_server.peer.requests[0].path == PATH


WRONG: dict[str, tuple[list[str], str]] = {
    "gpus": (["-g", "two"], "--gpus takes a whole number"),
    "negative gpus": (["-g", "-1"], "--gpus must be at least 0"),
    "hours": (["-h", "8x"], 'for example 8 or 0.5, not "8x"'),
    "comma": (["-h", "0,5"], 'for example 8 or 0.5, not "0,5"'),
    "too short": (["-h", "0.08"], "not 0.08"),
    "no time": (["-h", "0"], "not 0"),
    "too long": (["-h", "24.01"], "not 24.01"),
    "nan": (["-h", "nan"], 'not "nan"'),
    "exponent": (["-h", "1e1"], 'not "1e1"'),
    "disk and none": (["--no-persist", "--disk", "data"], "cannot be used together"),
    "disk name": (["--disk", "my disk"], "letters, digits, - and _"),
    "long disk": (["--disk", "d" * 51], "1 to 50"),
    "foreign letters": (["--disk", "dätä"], "letters, digits"),
    "entrypoint": (["--preserve-entrypoint"], "requires --dockerimage"),
    "label": (["-l", "nsight"], 'KEY=VALUE, not "nsight"'),
    "label without key": (["-l", "=true"], "KEY=VALUE"),
    "label without value": (["-l", "nsight="], "KEY=VALUE"),
    "label twice": (["-l", "a=1", "-l", "a=2"], "gives a two values"),
    "two images": (["--dockerimage", "a", "--dockerfile", "b"], "cannot be used together"),
    "empty name": (["-n", ""], "--name is empty"),
    "words": (["h100"], "unexpected argument"),
    "bare -h": (["-h"], "option -h requires an argument"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage_sends_no_request(peer: Peer, odcctl: Odcctl, case: str) -> None:
    """CLI-05, CLI-09, CLI-14, CLI-15."""
    options, message = WRONG[case]
    done = odcctl("reserve", *options)
    assert (done.code, done.out, peer.requests) == (2, "", [])
    assert message in done.err
    assert done.err.endswith("See: odcctl reserve --help\n")


def test_help_is_help_alone_because_h_is_hours(odcctl: Odcctl) -> None:
    """CLI-05."""
    assert odcctl("reserve", "--help").out == odcctl("-h", "reserve").out
    assert "-h, --hours HOURS" in odcctl("extend", "--help").out


def test_several_nodes_without_saying_so_are_explained_and_refused(
    dev_server: DevServer, odcctl: Odcctl, golden: Golden
) -> None:
    """CLI-12: elsewhere than on a terminal."""
    done = odcctl("reserve", "-t", "H100", "-g", "16", "-h", "1")
    assert (done.code, done.out) == (1, "")
    golden("reserve-multinode", done.err)
    assert len(dev_server.peer.requests_to(PATH)) == 1
    assert odcctl("reserve", "-t", "h100", "-g", "16", "-h", "1", "-d").code == 0


@pytest.mark.long
def test_every_step_is_a_line_and_the_way_in_the_result(
    dev_server: DevServer, odcctl: Odcctl, golden: Golden
) -> None:
    """CLI-17, CLI-18: standard error is no terminal here."""
    queued = {
        "queue_position": 2,
        "planned_start_at": "2026-07-01T14:20:00Z",
        "phase": "queued",
        "message": "needs 2 free GPUs on one node; 1 is free until 2026-07-01T14:20:00Z",
    }
    dev_server.will(
        a_reservation(12, "pending"),
        a_reservation(12, "queued", **queued),
        a_reservation(12, "queued", **queued),
        a_reservation(12, "queued", **queued | {"queue_position": 1}),
        a_reservation(12, "preparing", phase="starting", message="its shell starts on gpu-01"),
        a_reservation(12, ssh_command="ssh odc-12", jupyter="running",
                      jupyter_url="https://h/?token=x", disk_name="data"),
    )  # fmt: skip
    done = odcctl("reserve", "-t", "h100", "-g", "2", "-h", "8")
    assert done.code == 0
    golden("reserve", done.err + "--\n" + done.out)


def test_trace_tells_how_long_each_phase_took(
    dev_server: DevServer, odcctl: Odcctl, golden: Golden
) -> None:
    """CLI-51."""
    phases = [
        {"phase": "queued", "at": "2026-07-01T10:00:00Z", "took_s": 3.25},
        {"phase": "starting", "at": "2026-07-01T10:00:03Z", "took_s": 75.0},
        {"phase": "active", "at": "2026-07-01T10:01:18Z", "took_s": None},
    ]
    dev_server.will(a_reservation(12, phases=phases))
    golden("reserve-trace", odcctl("reserve", "--trace").out)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (a_reservation(12, "failed", failure_reason="its shell ended at once", message="no"),
         "odcctl: reservation 12 failed: its shell ended at once\n"),
        (a_reservation(12, "cancelled", message="cancelled by root"),
         "odcctl: reservation 12 was cancelled: cancelled by root\n"),
    ],
    ids=["failed", "cancelled"],
)  # fmt: skip
def test_one_that_never_becomes_active_is_told_and_1(
    dev_server: DevServer, odcctl: Odcctl, end: dict[str, Any], message: str
) -> None:
    dev_server.will(a_reservation(12, "preparing"), end)
    done = odcctl("reserve")
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith(f"{message}  `odcctl show 12` shows the details.\n")


def test_other_forms_are_the_apis_object_and_the_id(dev_server: DevServer, odcctl: Odcctl) -> None:
    done = odcctl("reserve", "--json")
    assert json.loads(done.out) == a_reservation(12)
    assert odcctl("reserve", "--output", "quiet").out == "12\n"
    made = odcctl("reserve", "--json", "--no-wait")
    assert json.loads(made.out) == a_reservation(12, "pending")
    assert odcctl("reserve", "--no-wait").out == "reservation 12 is pending: 2 h100 GPUs\n"


def test_test_only_says_when_and_reserves_nothing(dev_server: DevServer, odcctl: Odcctl) -> None:
    done = odcctl("reserve", "-t", "h100", "--test-only")
    assert (done.code, done.out, done.err) == (0, "", "odcctl: it would start at once on gpu-01\n")
    assert [one.query for one in dev_server.peer.requests] == [{"dry_run": "true"}]


def test_verbose_tells_what_is_sent(dev_server: DevServer, odcctl: Odcctl) -> None:
    """CLI-16."""
    line = odcctl("reserve", "-v", "-g", "2").err.splitlines()[0]
    assert line.startswith("odcctl: POST /v1/reservations to ")
    assert line.endswith('odcd.sock: {"gpus": 2}')


def test_a_refusal_tells_what_why_and_what_now(peer: Peer, odcctl: Odcctl) -> None:
    """CLI-54: the daemon's, word for word."""
    peer.on(
        "POST", PATH, problem(404, "UnknownGpuType", "OD005", 'no GPU type "h1000"', "Types: h100.")
    )
    done = odcctl("reserve", "-t", "h1000")
    assert (done.code, done.out) == (1, "")
    assert done.err == 'odcctl: nothing reserved: no GPU type "h1000" (OD005)\n  Types: h100.\n'


def test_a_restart_of_the_daemon_is_waited_out(dev_server: DevServer, odcctl: Odcctl) -> None:
    dev_server.will(
        a_reservation(12, "pending"), Reply(lose=True), problem(503, "Down", "OD023", "away"),
        a_reservation(12),
    )  # fmt: skip
    done = odcctl("reserve")
    assert done.code == 0
    assert done.err.splitlines()[1:] == ["odcctl: the daemon does not answer; waiting for it"]


def test_ctrl_c_says_that_it_goes_on_and_how_to_end_it(
    dev_server: DevServer, environment: dict[str, str], golden: Golden
) -> None:
    """CLI-17."""
    dev_server.will(a_reservation(12, "queued", queue_position=1))
    with subprocess.Popen(
        [sys.executable, "-m", "odcctl", "reserve"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        dev_server.peer.wait_for(f"{PATH}/12", 1)
        assert interrupt(process, signal.SIGINT) == 130
        out, err = process.communicate()
    assert out == ""
    golden("reserve-interrupted", err[err.index("odcctl: reservation 12 continues") :])


def test_ctrl_c_before_the_answer_waits_for_it(
    dev_server: DevServer, environment: dict[str, str]
) -> None:
    """CLI-17: whether there is a reservation is known in the end."""
    go_on = threading.Event()

    def slowly(_: Request) -> Reply:
        go_on.wait(120)
        return Reply(a_reservation(12, "pending"), status=201)

    dev_server.peer.on("POST", PATH, slowly)
    with subprocess.Popen(
        [sys.executable, "-m", "odcctl", "reserve"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        dev_server.peer.wait_for(PATH, 1)
        stderr = process.stderr
        assert stderr is not None
        send(process, signal.SIGINT, lambda within_s: select.select([stderr], [], [], within_s)[0])
        lines = [stderr.readline() for _ in range(2)]
        assert lines[1] == "odcctl: waiting for the answer; press Ctrl-C again to stop waiting\n"
        go_on.set()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.startswith("odcctl: reservation 12 continues without this command: it is pending")


def test_the_guided_way_asks_in_gpu_devs_order(
    dev_server: DevServer, terminal: Callable[..., Terminal], golden: Golden
) -> None:
    """CLI-02: type, GPUs, more than one node, hours, disk, Jupyter; wrong answers are asked
    again."""
    dev_server.jupyter = True
    dev_server.peer.on("GET", "/v1/disks", disks(*some_disks()))
    screen = terminal("reserve")
    shown = screen.until(b"Type [1]: ")
    screen.type(b"h200\r")
    shown += screen.until(b"Type [1]: ")
    screen.type(b"H100\r")
    shown += screen.until(b"GPUs [1]: ")
    screen.type(b"9\r")
    shown += screen.until(b"GPUs [1]: ")
    screen.type(b"16\r")
    shown += screen.until(b"Reserve all of them? (y/n) [n]: ")
    screen.type(b"y\r")
    shown += screen.until(b"[8]: ")
    screen.type(b"25\r")
    shown += screen.until(b"[8]: ")
    screen.type(b"0.5\r")
    shown += screen.until(b"Disk [2]: ")
    screen.type(b"nothing\r")
    shown += screen.until(b"Disk [2]: ")
    screen.type(b"main\r")
    shown += screen.until(b"Start Jupyter Lab in it? (y/n) [n]: ")
    screen.type(b"y\r")
    shown += screen.until(b"HOURS\r\n")
    assert screen.end() == 0
    assert dev_server.sent == {
        "gpu_type": "h100", "gpus": 16, "hours": 0.5, "distributed": True, "jupyter": True,
        "disk": "main",
    }  # fmt: skip
    text = shown.decode().replace("\r\n", "\n")
    golden("reserve-guided", text[: text.index("\x1b")])


def test_what_cannot_be_had_is_not_asked_for_and_defaults_are_taken(
    dev_server: DevServer, terminal: Callable[..., Terminal]
) -> None:
    """CLI-02: Enter takes what stands in brackets; the daemon has no Jupyter."""
    screen = terminal("reserve", "-t", "h100")
    screen.until(b"GPUs [1]: ")
    screen.type(b"\r")
    screen.until(b"[8]: ")
    screen.type(b"\r")
    shown = screen.until(b"HOURS\r\n")
    assert screen.end() == 0
    assert b"it would start at once on gpu-01" in shown
    assert b"Jupyter" not in shown
    assert b"As one command: odcctl reserve -t h100 -g 1 -h 8\r\n" in shown
    assert dev_server.sent == {"gpu_type": "h100", "gpus": 1, "hours": 8.0}


def test_a_cpu_type_has_no_gpus_to_ask_for(
    dev_server: DevServer, terminal: Callable[..., Terminal]
) -> None:
    screen = terminal("reserve", "-h", "1")
    screen.until(b"Type [1]: ")
    screen.type(b"3\r")
    shown = screen.until(b"HOURS\r\n")
    assert b"How many GPUs" not in shown
    assert dev_server.sent == {"gpu_type": "cpu-x86", "gpus": 0, "hours": 1.0}


def test_with_all_said_only_several_nodes_are_asked_about(
    dev_server: DevServer, terminal: Callable[..., Terminal]
) -> None:
    """CLI-02, CLI-12."""
    assert terminal("reserve", "-t", "h100", "-g", "1", "-h", "1").until(b"HOURS\r\n")
    assert dev_server.peer.requests_to("/v1/availability") == []
    screen = terminal("reserve", "-t", "h100", "-g", "16", "-h", "1")
    shown = screen.until(b"(y/n) [n]: ")
    assert b"2 whole nodes, started together" in shown
    screen.type(b"\r")
    shown = screen.until(b"One h100 node has 8 GPUs.\r\n")
    assert b"odcctl: nothing reserved: a reservation of several nodes must be confirmed" in shown
    assert screen.end() == 1
    screen = terminal("reserve", "-t", "h100", "-g", "16", "-h", "1")
    screen.until(b"(y/n) [n]: ")
    screen.type(b"y\r")
    screen.until(b"reservation 12 is active")
    assert dev_server.peer.requests_to(PATH)[-1].body["distributed"] is True


@pytest.mark.parametrize("key", [b"\x03", b"\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_leaving_a_question_reserves_nothing(
    dev_server: DevServer, terminal: Callable[..., Terminal], key: bytes
) -> None:
    screen = terminal("reserve")
    screen.until(b"Type [1]: ")
    screen.type(key)
    screen.until(b"odcctl: nothing reserved\r\n")
    assert screen.end() == 130
    assert dev_server.peer.requests_to(PATH) == []


@pytest.mark.parametrize("option", ["--no-interactive", "--json"])
def test_a_terminal_may_be_told_not_to_ask(
    dev_server: DevServer, terminal: Callable[..., Terminal], option: str
) -> None:
    """CLI-16."""
    screen = terminal("reserve", option)
    assert screen.end() == 0
    assert dev_server.sent == {}


def test_a_terminal_has_one_line_that_changes(
    dev_server: DevServer, terminal: Callable[..., Terminal]
) -> None:
    """CLI-17."""
    dev_server.will(
        a_reservation(12, "queued", queue_position=1, planned_start_at="2026-07-01T13:00:00Z"),
        a_reservation(12, "queued", queue_position=1, planned_start_at="2026-07-01T13:00:00Z"),
        a_reservation(12),
    )
    screen = terminal("reserve", "--no-interactive")
    shown = screen.until(b"HOURS\r\n")
    line = rb"\x1b\[\?25lreservation 12: queued, #1, expected 13:00 \(in 1:00:00\)  0:\d\d\r\x1b"
    assert re.match(line, shown)
    before, _, after = shown.partition(b"reservation 12 is active: 2 h100 GPUs\r\n")
    # The line is erased, and the cursor is back where it was, and visible.
    erased = b"\r\n\x1b[?25h\r\x1b[1A\x1b[2K"
    assert before.endswith(erased), before
    assert b"\n" not in before.removesuffix(erased)
    assert b"\x1b" not in after
    assert screen.end() == 0


def test_no_nodes_at_all_are_told(dev_server: DevServer, terminal: Callable[..., Terminal]) -> None:
    dev_server.peer.on("GET", "/v1/availability", availability())
    screen = terminal("reserve")
    screen.until(b"the cluster has no nodes yet\r\n")
    assert screen.end() == 1


def test_a_type_that_does_not_exist_is_told_before_the_other_questions(
    dev_server: DevServer, terminal: Callable[..., Terminal]
) -> None:
    """CLI-54."""
    screen = terminal("reserve", "-t", "h1000")
    shown = screen.until(b"Types: cpu-x86, h100, l4.\r\n")
    assert b'type "h1000" does not exist' in shown
    assert screen.end() == 1
