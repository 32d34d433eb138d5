"""odcctl run --sync on the local executor: a copy of a folder, and its results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.daemon import Odc, kill, new_odc, wait

CHANGES = "cat in.txt; echo out >>in.txt; mkdir -p new/deep; echo made >new/deep/file"


@pytest.fixture(scope="module")
def odc() -> Iterator[Odc]:
    with new_odc() as found:
        found.up("--node", "gpu[1-2]=h100:8x64")
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "in.txt").write_text("in\n")
    return made


def run(odc: Odc, folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return odc.odcctl("run", "--sync", str(folder), *argv, check=False)


@pytest.fixture(autouse=True)
def nothing_kept(odc: Odc) -> Iterator[None]:
    yield
    assert kept(odc) == []


def kept(odc: Odc) -> list[str]:
    state = odc.user_home / ".local/state/odcctl/sync"
    return sorted(entry.name for entry in state.iterdir()) if state.exists() else []


def test_a_command_runs_in_a_copy_and_its_changes_come_back(odc: Odc, folder: Path) -> None:
    (folder / "same").write_text("same")
    (folder / "gone").write_text("gone")
    before = (folder / "same").stat().st_ino
    done = run(odc, folder, "sh", "-c", f"{CHANGES}; rm gone; pwd; exit 7")
    assert done.returncode == 7, done.stderr
    first, where = done.stdout.splitlines()
    assert (first, where.startswith("/tmp/odc-sync-")) == ("in", True)
    assert (folder / "in.txt").read_text() == "in\nout\n"
    assert (folder / "new/deep/file").read_text() == "made\n"
    # A deletion is not brought back, and an unchanged file is not touched.
    assert (folder / "gone").read_text() == "gone"
    assert (folder / "same").stat().st_ino == before
    assert not Path(where).exists()
    assert "3 files" in done.stderr
    assert "2 files" in done.stderr


def test_nothing_that_is_ignored_is_sent_and_names_may_be_anything(odc: Odc, folder: Path) -> None:
    for name in (".git", "build", "bücher"):
        (folder / name).mkdir()
        (folder / name / "file").write_text(name)
    (folder / ".gitignore").write_text("build/\n*.log\n")
    (folder / "a.log").write_text("")
    (folder / "empty").write_bytes(b"")
    (folder / "two\nlines").write_text("x")
    (folder / "link").symlink_to("in.txt")
    (folder / "out").symlink_to("/etc/passwd")
    os.mkfifo(folder / "fifo")
    done = run(odc, folder, "sh", "-c", "find . | sort; cat link; >'new\nline'; ln -s in.txt l2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        ".\n./.gitignore\n./bücher\n./bücher/file\n./empty\n./in.txt\n./link\n./two\nlines\nin\n"
    )
    assert (folder / "new\nline").read_bytes() == b""
    assert (folder / "l2").readlink() == Path("in.txt")
    assert "not sent: fifo: it is neither a file, a folder nor a link" in done.stderr
    assert "not sent: out: it is a link that leads out of the folder" in done.stderr


def test_a_file_that_was_changed_here_meanwhile_stays(odc: Odc, folder: Path) -> None:
    (folder / "other").write_text("other\n")
    script = f"echo job >>in.txt; echo mine >{folder}/in.txt; echo job >>other; rm {folder}/other"
    done = run(odc, folder, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    [beside] = folder.glob("in.txt.odc-*")
    assert (folder / "in.txt").read_text() == "mine\n"
    assert beside.read_text() == "in\njob\n"
    assert (folder / "other").read_text() == "other\njob\n"
    assert f"kept beside it: in.txt as {beside.name}" in done.stderr


def test_a_job_cannot_write_outside_the_folder(odc: Odc, folder: Path, tmp_path: Path) -> None:
    (folder / "here").symlink_to(tmp_path)
    script = (
        f"ln -s {tmp_path} out; mkdir here .git; echo bad >here/file; echo bad >.git/config; "
        "ln -s ../.. up; mkfifo fifo; echo good >good"
    )
    done = run(odc, folder, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert (folder / "good").read_text() == "good\n"
    assert sorted(entry.name for entry in folder.iterdir()) == ["good", "here", "in.txt"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["project"]
    for name in ("out", "up", "here/file"):
        assert f"not fetched: ./{name}: " in done.stderr


def test_each_node_has_a_copy_and_the_results_of_the_first_come_back(
    odc: Odc, folder: Path
) -> None:
    done = run(odc, folder, "-N2", "sh", "-c", 'cat in.txt; echo "$ODC_RANK" >in.txt')
    assert done.returncode == 0, done.stderr
    assert sorted(line.split(": ")[-1] for line in done.stdout.splitlines()) == ["in", "in"]
    assert (folder / "in.txt").read_text() == "0\n"


@pytest.mark.long
def test_a_requeued_job_gets_the_same_files_again(odc: Odc, folder: Path) -> None:
    started = folder.parent / "started"
    script = f"cat in.txt; echo x >>in.txt; echo $ODC_ATTEMPT >{started}; [ $ODC_ATTEMPT = 2 ] || "
    process = subprocess.Popen(
        [sys.executable, "-m", "odcctl", "run", "--sync", str(folder), "--requeue", "sh", "-c",
         f"{script} sleep 300"],
        env=odc.environment, cwd=odc.work, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    wait(lambda: started.exists() and started.read_text() == "1\n", odc.log)
    (folder / "in.txt").write_text("edited\n")
    [job] = json.loads(odc.odcctl("queue", "--json").stdout)["jobs"]
    odc.odcctl("requeue", str(job["id"]))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == "in\nin\n"
    assert (folder / "in.txt").read_text() == "edited\n"
    assert (folder / f"in.txt.odc-{job['id']}").read_text() == "in\nx\n"


def a_running(odc: Odc, folder: Path, script: str) -> tuple[subprocess.Popen[str], int]:
    """A command that follows a job that has started to run the script."""
    flag = folder.parent / "runs"
    process = subprocess.Popen(
        [sys.executable, "-m", "odcctl", "run", "--sync", str(folder), "sh", "-c",
         f"echo $SLURM_JOB_ID >{flag}; {script}"],
        env=odc.environment, cwd=odc.work, text=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    return process, int(wait(lambda: flag.exists() and flag.read_text(), odc.log))


def test_results_are_fetched_later_if_the_command_was_killed(odc: Odc, folder: Path) -> None:
    go = folder.parent / "go"
    script = f"echo out >out; until [ -e {go} ]; do sleep 0.1; done; exit 3"
    process, job = a_running(odc, folder, script)
    process.kill()
    process.communicate()
    assert not (folder / "out").exists()
    go.touch()
    done = odc.odcctl("sync", str(job))
    assert (folder / "out").read_text() == "out\n"
    assert f"job {job} is RUNNING" in done.stderr
    assert odc.wait_for(job, "FAILED")["exit_code"] == 3
    assert kept(odc) == []
    done = odc.odcctl("sync", str(job), check=False)
    assert (done.returncode, "no results of job" in done.stderr) == (1, True)


def test_results_of_a_cancelled_job_come_back(odc: Odc, folder: Path) -> None:
    process, job = a_running(odc, folder, "echo out >out; exec sleep 300")
    odc.odcctl("cancel", str(job))
    _, err = process.communicate(timeout=60)
    assert (folder / "out").read_text() == "out\n", err
    assert odc.job(job)["state"] == "CANCELLED"


@pytest.mark.long
def test_a_copy_that_is_left_on_this_machine_is_used_after_the_jobs_end(
    odc: Odc, folder: Path
) -> None:
    """The job was killed at the end of its grace period, as no client took its results."""
    process, job = a_running(odc, folder, "echo out >out; exec sleep 300")
    process.kill()
    process.communicate()
    odc.odcctl("cancel", str(job))
    odc.wait_for(job, "CANCELLED")
    assert not (folder / "out").exists()
    odc.odcctl("sync", str(job))
    assert (folder / "out").read_text() == "out\n"


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("--chdir=/tmp", "true"), "--chdir and --sync cannot be used together"),
        (("--output=out.txt", "true"), 'the path "out.txt" must be absolute'),
        (("--signal=B:USR1@60", "true"), "--signal=B: and --sync cannot be used together"),
        (("-N2", "--launch=first", "true"), "--launch=first and --sync cannot be used together"),
    ],
)
def test_options_that_contradict_a_copy_are_refused(
    odc: Odc, folder: Path, argv: tuple[str, ...], text: str
) -> None:
    done = run(odc, folder, *argv)
    assert (done.returncode, text in done.stderr) == (1, True), done.stderr
    assert kept(odc) == []


def test_the_copy_may_be_in_another_folder(odc: Odc, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "it's here; {x}"
    place.mkdir()
    odc.environment["ODC_SYNC_FOLDER"] = str(place)
    try:
        done = run(odc, folder, "sh", "-c", "pwd; echo out >out")
    finally:
        del odc.environment["ODC_SYNC_FOLDER"]
    assert (done.returncode, done.stdout.startswith(f"{place}/odc-sync-")) == (0, True), done
    assert (folder / "out").exists()
    assert list(place.iterdir()) == []


def test_results_that_cannot_be_written_are_kept_by_the_job(
    odc: Odc, folder: Path, tmp_path: Path
) -> None:
    """The user's folder vanishes, and is there again for the next try."""
    process, job = a_running(odc, folder, f"rm -r {folder}; echo x >{folder}; echo out >out")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the results were not written" in err
    folder.unlink()
    folder.mkdir()
    odc.odcctl("sync", str(job))
    assert (folder / "out").read_text() == "out\n"


def test_an_option_at_the_wrong_place_is_explained(odc: Odc, folder: Path) -> None:
    done = odc.odcctl("run", "--gpus", "1", "--sync", folder, "true", check=False)
    assert (done.returncode, "comes first" in done.stderr) == (1, True)


def test_too_many_files_are_refused_before_anything_is_sent(odc: Odc, folder: Path) -> None:
    with (folder / "large").open("wb") as file:
        file.truncate(1 << 31)
    done = run(odc, folder, "true")
    assert (done.returncode, "at most 1 GiB can be sent" in done.stderr) == (1, True)
    # Nor by a client that counts wrongly.
    body = {"command": "run", "argv": ["true"], "work_dir": "/",
            "sync": {"token": "0" * 32, "size_bytes": 1 << 31}}  # fmt: skip
    status, answer = odc.request("POST", "/v1/submit-argv", body)
    assert (status, "at most 1024 MiB" in answer["detail"]) == (413, True), answer


def test_a_job_without_its_files_starts_nothing(odc: Odc, folder: Path) -> None:
    """The archive is cut, as if the connection broke between two files."""
    script = (
        "import odcctl.sync.sending as s; s.COMPLETE = 'nothing'; "
        "from odcctl.__main__ import main; import sys; sys.exit(main())"
    )
    marker = folder.parent / "started"
    done = subprocess.run(
        [sys.executable, "-c", script, "run", "--sync", str(folder), "touch", str(marker)],
        env=odc.environment, cwd=odc.work, text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode != 0, marker.exists()) == (True, False), done.stderr
    assert "files were not sent: they did not arrive completely" in done.stderr


def test_the_output_of_json_and_test_only(odc: Odc, folder: Path) -> None:
    done = run(odc, folder, "--test-only", "true")
    assert (done.returncode, kept(odc)) == (0, [])
    done = odc.odcctl("run", "--json", "--sync", str(folder), "echo", "x")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    assert answer["id"]


def test_a_daemon_may_restart_meanwhile(odc: Odc, folder: Path) -> None:
    go = folder.parent / "go"
    script = f"until [ -e {go} ]; do sleep 0.1; done; head -c 3000000 /dev/urandom >out"
    process, _ = a_running(odc, folder, script)
    kill(odc.pid)
    odc.up("--node", "gpu[1-2]=h100:8x64")
    go.touch()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, (folder / "out").stat().st_size) == (0, 3_000_000), err
