"""submit hands everything on untouched, and makes one job whatever happens on the way."""

from __future__ import annotations

import json
from pathlib import Path

from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import ended, submitted
from tests.odcctl.peer import Answer, Peer, Reply, Request, problem

ARGV = "/v1/submit-argv"


def taken(**fields: object) -> Reply:
    return Reply(submitted(**fields), status=201)


def needs_script(path: str, **fields: object) -> Answer:
    """As the daemon does: ask for the script, then take the job."""

    def answer(request: Request) -> Reply:
        if request.body["script"] is not None:
            return taken(**fields)
        return problem(409, "ScriptNeeded", "OD000", "the script was not sent", script_path=path)

    return answer


def test_submit_says_the_id_as_sbatch_does(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", ARGV, taken(job_id=4127))
    done = odcctl("submit", "--wrap", "true")
    assert (done.code, done.out, done.err) == (0, "Submitted batch job 4127\n", "")
    peer.on("POST", ARGV, taken(job_id=4127, parsable=True))
    assert odcctl("submit", "--parsable", "--wrap", "true").out == "4127\n"
    peer.on("POST", ARGV, taken(job_id=4127, quiet=True))
    assert odcctl("submit", "-Q", "--wrap", "true").out == ""


def test_json_of_a_submit_is_the_answer_wherever_it_was_asked_for(
    peer: Peer, odcctl: Odcctl
) -> None:
    peer.on("POST", ARGV, taken())
    assert json.loads(odcctl("submit", "--json", "--wrap", "true").out) == submitted()
    assert json.loads(odcctl("--json", "submit", "--wrap", "true").out) == submitted()
    assert [request.body["argv"] for request in peer.requests] == [["--wrap", "true"]] * 2
    peer.on("POST", ARGV, taken(json=True))
    assert json.loads(odcctl("submit", "--wrap", "true", "--json").out) == submitted(json=True)
    assert peer.requests[-1].body["argv"] == ["--wrap", "true", "--json"]


def test_the_daemon_gets_argv_folder_environment_and_umask_untouched(
    peer: Peer, odcctl: Odcctl, home: Path
) -> None:
    peer.on("POST", ARGV, taken())
    odcctl(
        "submit",
        "-o",
        "x y.out",
        "--output=z",
        "-p",
        "a",
        "--",
        "echo",
        "--json",
        "ü",
        NAME="a=b\nc",
    )
    body = peer.requests[0].body
    assert body["command"] == "submit"
    assert body["argv"] == ["-o", "x y.out", "--output=z", "-p", "a", "--", "echo", "--json", "ü"]
    assert body["work_dir"] == str(home)
    assert body["environment"]["NAME"] == "a=b\nc"
    assert 0 <= body["umask"] <= 0o777
    assert body["stdin_is_tty"] is False
    assert body["submit_host"]


def test_a_script_is_sent_when_the_daemon_asks_for_it(
    peer: Peer, odcctl: Odcctl, home: Path
) -> None:
    (home / "x.sh").write_text("#!/bin/sh\necho ü\n")
    peer.on("POST", ARGV, needs_script("x.sh"))
    assert odcctl("submit", "x.sh", "--epochs", "3").code == 0
    first, second = peer.requests
    assert first.body["script"] is None
    assert second.body == {**first.body, "script": "#!/bin/sh\necho ü\n", "script_path": "x.sh"}


def test_a_script_may_come_from_standard_input_or_from_path(
    peer: Peer, odcctl: Odcctl, home: Path
) -> None:
    peer.on("POST", ARGV, needs_script("-"))
    assert odcctl("submit", stdin="#!/bin/sh\nfrom stdin\n").code == 0
    assert peer.requests[-1].body["script"] == "#!/bin/sh\nfrom stdin\n"
    (home / "bin").mkdir()
    (home / "bin" / "tool").write_text("#!/bin/sh\nfrom path\n")
    peer.on("POST", ARGV, needs_script("tool"))
    assert odcctl("submit", "tool", PATH=f"/nowhere:{home}/bin").code == 0
    assert peer.requests[-1].body["script"] == "#!/bin/sh\nfrom path\n"


def test_a_script_that_cannot_be_sent_is_named_with_the_cause(
    peer: Peer, odcctl: Odcctl, home: Path
) -> None:
    peer.on("POST", ARGV, needs_script("x.sh"))
    missing = odcctl("submit", "x.sh")
    assert missing.code == 1
    assert 'job not submitted: script "x.sh" cannot be read: No such file' in missing.err
    (home / "x.sh").write_bytes(b"#!/bin/sh\necho \xff\n")
    assert 'script "x.sh" is not UTF-8: byte 0xff at offset 15' in odcctl("submit", "x.sh").err
    (home / "x.sh").unlink()
    (home / "x.sh").mkdir()
    assert "cannot be read: Is a directory" in odcctl("submit", "x.sh").err


def test_what_is_not_utf8_is_left_out_or_refused(
    peer: Peer, odcctl: Odcctl, environment: dict[str, str]
) -> None:
    peer.on("POST", ARGV, taken())
    environment["BAD"] = "a\udcff"
    done = odcctl("submit", "--wrap", "true")
    assert done.code == 0
    assert done.err == "odcctl: warning: variable BAD is not UTF-8 and is left out of the job\n"
    assert "BAD" not in peer.requests[0].body["environment"]
    refused = odcctl("submit", b"--wrap", b"echo \xff")
    assert (refused.code, refused.out) == (1, "")
    assert "argument 2 is not UTF-8" in refused.err


def test_a_lost_answer_is_asked_for_again_under_the_same_key(peer: Peer, odcctl: Odcctl) -> None:
    away = problem(503, "DatabaseDown", "OD023", "PostgreSQL cannot be reached")
    peer.on("POST", ARGV, Reply(lose=True), away, taken(job_id=9))
    done = odcctl("submit", "--wrap", "true")
    assert (done.code, done.out) == (0, "Submitted batch job 9\n")
    keys = [request.headers["idempotency-key"] for request in peer.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    odcctl("submit", "--wrap", "true")
    assert peer.requests[-1].headers["idempotency-key"] not in keys


def test_a_refusal_tells_what_why_and_what_now(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", ARGV, problem(
        404, "UnknownPartition", "OD001", 'partition "h1000" does not exist',
        "You may submit to: cpu, h100, l4.",
    ))  # fmt: skip
    done = odcctl("submit", "-p", "h1000", "--wrap", "true")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        'odcctl: job not submitted: partition "h1000" does not exist (OD001)\n'
        "  You may submit to: cpu, h100, l4.\n"
    )


def test_warnings_go_beside_the_result(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", ARGV, taken(warnings=["line 9 of the script has no effect"]))
    done = odcctl("submit", "--wrap", "true")
    assert done.out == "Submitted batch job 7\n"
    assert done.err == "odcctl: warning: line 9 of the script has no effect\n"


def test_a_preview_of_preemption_is_told_on_stdout(peer: Peer, odcctl: Odcctl) -> None:
    text = (
        "the job would start at 2026-07-01T12:01:00Z at the latest on n1, preempting 1 job:\n"
        "  job 7 of bob (QOS scavenger) after 3 h: 24 GPU-hours lost; it goes back to the queue"
    )
    answer = {
        "test_only": {"text": text}, "preview_preemption": True, "json": False, "warnings": [],
    }  # fmt: skip
    peer.on("POST", ARGV, answer)
    done = odcctl("submit", "--preview-preemption", "--wrap", "true")
    assert (done.code, done.out, done.err) == (0, f"{text}\n", "")
    done = odcctl("--json", "submit", "--preview-preemption", "--wrap", "true")
    assert json.loads(done.out) == answer


def test_moments_of_the_daemons_texts_are_local_ones(peer: Peer, odcctl: Odcctl) -> None:
    text = "the job would start at 2026-11-21T11:26:39Z at the latest on n1"
    answer = {"test_only": {"text": text}, "json": False, "warnings": []}
    peer.on("POST", "/v1/submit-argv", answer)
    run = odcctl("submit", "--test-only", "--wrap", "true", TZ="America/New_York")
    assert run.err == "odcctl: the job would start at 2026-11-21T06:26:39 at the latest on n1\n"
    busy = problem(409, "Conflict", "OD024", "job 3 is on gpu1 until 2026-11-21T11:26:39Z")
    peer.on("POST", "/v1/submit-argv", busy)
    run = odcctl("submit", "--wrap", "true", TZ="America/New_York")
    assert "until 2026-11-21T06:26:39 (OD024)" in run.err
    run = odcctl("submit", "--wrap", "true")
    assert "until 2026-11-21T11:26:39Z (OD024)" in run.err


def test_test_only_submits_nothing_and_says_so_on_stderr(peer: Peer, odcctl: Odcctl) -> None:
    answer = {"test_only": {"text": 'job "x" would be accepted'}, "json": False, "warnings": []}
    peer.on("POST", ARGV, answer)
    done = odcctl("submit", "--test-only", "--wrap", "true")
    assert (done.code, done.out, done.err) == (0, "", 'odcctl: job "x" would be accepted\n')


def test_submit_wait_exits_with_the_jobs_code(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", ARGV, taken(wait=True))
    peer.on("GET", "/v1/jobs/7", {"jobs": [], "ended": False},
            {"jobs": [ended(state="FAILED", exit_code=5)], "ended": True})  # fmt: skip
    done = odcctl("submit", "--wait", "--wrap", "exit 5")
    assert (done.code, done.out) == (5, "Submitted batch job 7\n")


def test_help_of_submit_lists_the_daemons_options(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/submit-options", {"options": [
        {"long": "job-name", "short": "J", "value": "NAME", "help": "name of the job"},
        {"long": "hold", "short": "H", "value": None, "help": "submit it held"},
    ]})  # fmt: skip
    done = odcctl("submit", "--help")
    assert done.code == 0
    assert "  -J, --job-name NAME  name of the job\n" in done.out
    alone = odcctl("submit", "--help", ODC_HOME="/nowhere")
    assert (alone.code, alone.err) == (0, "")
    assert "submit-options.md" in alone.out
