"""Slurm's commands parse any command line, file and variable, or refuse it, and never take long."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from odcd.errors import BadRequest, OdcError
from odcd.slurm import lists
from odcd.slurm.commands.sacct import parse_sacct
from odcd.slurm.commands.salloc import parse_salloc, parse_sattach
from odcd.slurm.commands.sbcast import parse_sbcast
from odcd.slurm.commands.scancel import parse_scancel
from odcd.slurm.commands.sinfo import parse_sinfo
from odcd.slurm.commands.squeue import parse_squeue
from odcd.slurm.commands.srun import parse_srun
from odcd.slurm.parse import parse_submit
from odcd.slurm.request import SubmitArgv
from odcd.slurm.usage import Usage
from tests.attack.test_parsers import LARGE, NOW, PIECES, SLOW_CPU_S, allowed, hunt, in_time, texts

Run = Callable[[list[str], dict[str, str], str], object]
COMMANDS: dict[str, Run] = {
    "srun": lambda argv, variables, text: parse_srun(argv, variables, lambda _: text),
    "salloc": lambda argv, variables, _: parse_salloc(argv, variables),
    "sattach": lambda argv, _, __: parse_sattach(argv),
    "sbcast": lambda argv, variables, _: parse_sbcast(argv, variables),
    "squeue": lambda argv, variables, _: parse_squeue(argv, variables),
    "sacct": lambda argv, variables, _: parse_sacct(argv, variables, NOW),
    "scancel": lambda argv, _, __: parse_scancel(argv),
    "sinfo": lambda argv, variables, _: parse_sinfo(argv, variables),
}
LETTERS = "nNcwxGDojtJpuSsEiOk"
VARIABLES: tuple[str, ...] = (
    "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STDINMODE", "SQUEUE_FORMAT", "SACCT_FORMAT",
)  # fmt: skip


def read_command(run: Run, text: str) -> None:
    """The text as a word, an option, the value of options, a file and a variable."""
    argvs = [[text], [f"--{text}"], ["--multi-prog", "file"], [f"--cpu-bind={text}", "x"]]
    argvs += [[f"-{letter}", text, "x"] for letter in LETTERS]
    for argv in argvs:
        for variables in ({}, dict.fromkeys(VARIABLES, text)):
            with suppress(Usage):
                allowed(partial(run, argv, variables, text))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_line_is_parsed_or_refused(name: str) -> None:
    hunt(lambda text: in_time(lambda: read_command(COMMANDS[name], text)), texts, for_s=0)


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_no_long_command_line_takes_long(name: str) -> None:
    for piece in PIECES:
        text = piece * (LARGE // len(piece))
        in_time(lambda given=text: read_command(COMMANDS[name], given))


@pytest.mark.parametrize("name", COMMANDS)
def test_many_words_take_linear_time(name: str) -> None:
    word = "-h" if name in ("sinfo", "squeue") else "-v"
    begun_s = time.process_time()
    with suppress(Usage, OdcError):
        COMMANDS[name]([word] * 100_000, {}, "")
    assert time.process_time() - begun_s < SLOW_CPU_S


def test_many_commas_take_linear_time() -> None:
    """Before: 60,000 commas, which fit one word of a shell, stopped the daemon for 13 seconds, and
    a request of 8 MB for hours."""
    in_time(lambda: parse_scancel(["1," * 200_000]))
    assert len(parse_scancel(["1," * 20_000 + "7_[1,2],8.3"]).ids) == 20_002
    assert lists.split_selectors("7_[1,2],8") == ["7_[1,2]", "8"]


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--het-group=0-127", "-n70", "--multi-prog", "conf"], "* true\n" + "#" * 7_000_000),
        (["--het-group=0-127", "-n10000", "--multi-prog", "conf"], "* true\n" * 4096),
        (["--het-group=0-127", "--exclude=n[1-10000]", "true"], ""),
    ],
)
def test_a_step_in_many_components_is_read_once_or_refused(argv: list[str], text: str) -> None:
    """Before: 31 seconds, because every component read the file again."""

    def refused() -> None:
        with pytest.raises(Usage, match=r"together|a step has at most"):
            parse_srun(argv, {}, lambda _: text)

    in_time(refused)


@pytest.mark.parametrize(
    "options",
    [
        ["--export=" + ",".join(f"A{n}" for n in range(20_000))],
        ["--exclude=n[1-10000]"],
    ],
)
def test_options_that_apply_to_many_components_are_refused(options: list[str]) -> None:
    """Before: 5 seconds, and a job with over a million names of nodes."""
    argv = [*options, "-N1", *[":", "-N1"] * 126, "--wrap=true"]
    request = SubmitArgv(
        command="sbatch", argv=argv, work_dir="/", environment={}, script=None, umask=0o022
    )

    def refused() -> None:
        with pytest.raises(BadRequest, match="together"):
            parse_submit(request, NOW)

    in_time(refused)


@pytest.mark.parametrize("line", ["0-9999 true\n", "* true\n"])
def test_many_lines_for_the_same_tasks_are_read_quickly(line: str) -> None:
    """Before: ten thousand tasks for each of its lines."""

    def read() -> None:
        with suppress(Usage):
            parse_srun(["-n10000", "--multi-prog", "f"], {}, lambda _: line * 30_000)

    in_time(read)


def test_large_programs_for_many_tasks_are_refused() -> None:
    """Before: one line of a megabyte for each of 10,000 tasks became ten gigabytes."""

    def refused() -> None:
        with pytest.raises(Usage, match="too long"):
            parse_srun(["-n10000", "--multi-prog", "file"], {}, lambda _: f"* x {'a' * 1_000_000}")

    in_time(refused)


@pytest.mark.parametrize(
    "text",
    ["#\n" * 1_000_000, "* a\n" * 300_000, "* a " + "'' " * 1_000_000, "* a " + "\\x" * 500_000],
    ids=["comments", "lines", "words", "escapes"],
)
def test_the_file_of_multi_prog_is_limited(text: str) -> None:
    """Before: only its ranks counted. One call of srun with a file of 8 MB stopped all requests for
    22 seconds."""
    with pytest.raises(Usage, match=r"files of --multi-prog are too long"):
        parse_srun(["-n2", "--multi-prog", "f"], {}, lambda _: text)


def test_components_share_the_limits_of_multi_prog() -> None:
    argv = ["--het-group=0-127", "-n2", "--multi-prog", "f"]
    with pytest.raises(Usage, match=r"files of --multi-prog are too long"):
        parse_srun(argv, {}, lambda _: "#\n" * 200 + "* a\n")
    assert len(parse_srun(argv, {}, lambda _: "* a\n").parts) == 128
    with pytest.raises(Usage, match=r"commands of the tasks are too long"):
        parse_srun(["--het-group=0-127", "true", *["x"] * 2_000], {}, lambda _: "")


def test_the_words_of_the_commands_of_all_tasks_are_limited() -> None:
    """Before: only their characters, before %t was replaced: four seconds, and 95 MB."""
    with pytest.raises(Usage, match=r"commands of the tasks are too long"):
        parse_srun(["-n10000", "--multi-prog", "f"], {}, lambda _: "* a " + "%t " * 50)
    call = parse_srun(["-n10000", "--multi-prog", "f"], {}, lambda _: "* a " + "%t " * 15)
    assert call.programs[9_999][1] == "9999"


def test_tasks_with_the_same_command_share_it() -> None:
    text = "0,2 a %o\n* b " + "x " * 10_000
    call = parse_srun(["-n10000", "--multi-prog", "f"], {}, lambda _: text)
    assert [program[0] for program in call.programs] == ["a", "a", "b"]
    assert call.assigned is not None
    assert call.assigned[:4] == (0, 2, 1, 2)
    assert set(call.assigned[4:]) == {2}


def test_many_words_with_several_components_are_refused() -> None:
    """Before: all words were read once for each component, which took two and a half seconds."""
    for argv in ([":"] * 50_000, ["-n1", ":"] * 25_000):
        with pytest.raises(BadRequest, match="at most 20000 words"):
            parse_submit(SubmitArgv(argv=argv, work_dir="/"), NOW)
    with pytest.raises(Usage, match="and 20000 words"):
        parse_srun(["-n1", "true", ":"] * 20_000, {}, lambda _: "")
