"""srun over TCP, with an API key instead of the caller's identity."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.controlplane.children import free_port
from tests.support.harness.daemon import new_odc
from tests.support.harness.slurm import NODES, TIMEOUT_S, Slurm, holding_two, slurm_of


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Slurm's commands in a shell that has only an address and a key."""
    with new_odc() as odc:
        address = f"127.0.0.1:{free_port()}"
        odc.up("--listen", address, *NODES)
        key = odc.odcd("token", pwd.getpwuid(os.getuid()).pw_name).stdout.strip()
        odc.environment |= {"ODC_SERVER": f"http://{address}", "ODC_TOKEN": key}
        with (
            slurm_of(odc, tmp_path_factory.mktemp("commands") / "bin") as slurm,
            holding_two(slurm) as made,
        ):
            yield made


def test_output_input_and_exit_codes_pass_over_tcp(remote: Slurm) -> None:
    text = "".join(f"line {n}\n" for n in range(20_000))
    done = remote.run("srun", "-n4", "-l", "wc", "-lc", stdin=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in sorted(done.stdout.splitlines())] == [
        [f"{n}:", "20000", str(len(text))] for n in range(4)
    ]
    done = remote.run("srun", "-n2", "sh", "-c", "echo out; echo err >&2; exit $SLURM_PROCID")
    assert (done.returncode, done.stdout) == (1, "out\nout\n")
    assert done.stderr.startswith("err\nerr\n")


def test_an_allocation_over_tcp_is_released_with_its_exit_code(remote: Slurm) -> None:
    done = remote.run("srun", "-n1", "sh", "-c", "exit 5", SLURM_JOB_ID="")
    assert done.returncode == 5


def test_signals_pass_over_tcp(remote: Slurm) -> None:
    script = "trap 'echo got; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    step = remote.start("srun", "-n1", "sh", "-c", script)
    assert step.stdout.readline() == "up\n"
    step.terminate()
    out, err = step.communicate(timeout=TIMEOUT_S)
    assert out == "got\n", err


@pytest.mark.parametrize("key", ["", "odc_nonsense"])
def test_without_a_valid_key_nothing_runs(remote: Slurm, key: str, tmp_path: Path) -> None:
    before = len(remote.steps())
    done: subprocess.CompletedProcess[str] = remote.run(
        "srun", "-n1", "touch", str(tmp_path / "ran"), ODC_TOKEN=key, HOME=str(tmp_path)
    )
    assert done.returncode == 1, done
    assert done.stderr.startswith("srun: error: "), done
    assert not (tmp_path / "ran").exists()
    assert len(remote.steps()) == before
