from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odcd.errors import BadRequest, OdcError
from odcd.slurm.argv import CommandLine, parse_argv
from odcd.slurm.directives import late_directive, parse_directives, split_words
from odcd.slurm.environment import exported, parse_export, variable_options
from odcd.slurm.option_values import Settings
from odcd.slurm.sbatch_options import OPTIONS

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def parsed(line: CommandLine) -> list[tuple[str, str | None]]:
    return [(given.option.long, given.text) for given in line.options]


@pytest.mark.parametrize(
    ("argv", "options", "operands"),
    [
        ("x.sh", [], ["x.sh"]),
        ("--time=5 x.sh a -n 3", [("time", "5")], ["x.sh", "a", "-n", "3"]),
        ("--time 5 x.sh", [("time", "5")], ["x.sh"]),
        ("-t 5 -n4 -N=2", [("time", "5"), ("ntasks", "4"), ("nodes", "=2")], []),
        ("-HWt5 x", [("hold", None), ("wait", None), ("time", "5")], ["x"]),
        ("--job=a --part=b", [("job-name", "a"), ("partition", "b")], []),
        ("--mem=1 --gpus=2", [("mem", "1"), ("gpus", "2")], []),
        ("--exclusive x.sh", [("exclusive", None)], ["x.sh"]),
        ("--exclusive=user", [("exclusive", "user")], []),
        ("--nice x.sh", [("nice", None)], ["x.sh"]),
        ("--nice=-5", [("nice", "-5")], []),
        ("-t -5", [("time", "-5")], []),
        ("--comment=a=b", [("comment", "a=b")], []),
        ("- a", [], ["-", "a"]),
        ("--wrap=x -- y", [("wrap", "x")], ["y"]),
    ],
)
def test_a_command_line_is_split_as_getopt_long_splits_it(
    argv: str, options: list[tuple[str, str | None]], operands: list[str]
) -> None:
    line = parse_argv(argv.split(" "))
    assert parsed(line) == options
    assert list(line.operands) == operands
    assert line.after_dashes is ("--" in argv.split(" "))


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("--gpus-per-noed=2", "Did you mean --gpus-per-node? odcctl submit --help lists"),
        ("--ntask-per-node=2", "Did you mean --ntasks-per-node? odcctl submit --help lists"),
        ("--nope", "odcctl submit --help lists"),
    ],
)
def test_a_misspelt_option_is_answered_with_the_nearest_one(word: str, hint: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_argv([word])
    assert str(refused.value.hint).startswith(hint)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--nope"], 'unrecognized option "--nope"'),
        (["--=x"], 'unrecognized option "--"'),
        (["-Z"], 'unrecognized option "-Z"'),
        (["-HZ"], 'unrecognized option "-Z" in "-HZ"'),
        (["--gpu=1"], '"--gpu" is ambiguous'),
        (["--time"], "option -t/--time needs a value"),
        (["-t"], "option -t/--time needs a value"),
        (["--wait=yes"], "--wait does not accept a value"),
    ],
)
def test_a_wrong_command_line_is_refused_with_the_wrong_argument(
    argv: list[str], message: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_argv(argv)
    assert message in refused.value.message


def test_an_ambiguous_option_lists_the_candidates() -> None:
    with pytest.raises(BadRequest) as refused:
        parse_argv(["--ntasks-per=1"])
    assert "--ntasks-per-node" in (refused.value.hint or "")


TEXTS = st.text(max_size=12) | st.sampled_from(
    [f"--{option.long}" for option in OPTIONS]
    + [f"-{option.short}" for option in OPTIONS if option.short]
    + ["--", "-", ":", "--mem=1G", "--gres=gpu:2", "-n4", "=", "--begin=now", "1-3", "%2"]
)


@given(st.lists(TEXTS, max_size=8))
def test_any_command_line_is_read_or_refused(argv: list[str]) -> None:
    with suppress(OdcError):
        Settings().apply(parse_argv(argv).options, NOW)


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        (" --job-name            simple", ["--job-name", "simple"]),
        ("\t--exclude\ta", ["--exclude", "a"]),
        (" -N 2 -n4 # two nodes", ["-N", "2", "-n4"]),
        (" --comment='a b' --output=\"/a b/%j\"", ["--comment=a b", "--output=/a b/%j"]),
        (" --comment=issue#5", ["--comment=issue#5"]),
        (" --comment='# no comment'", ["--comment=# no comment"]),
        (" --comment=''", ["--comment="]),
        (" a\\ b", ["a\\", "b"]),
        (" --comment='it'\"s\" -n1", ["--comment=its", "-n1"]),
        (" # all comment", []),
        ("", []),
    ],
)
def test_a_line_of_options_is_split_at_blanks_outside_quotes(line: str, texts: list[str]) -> None:
    assert split_words(line) == texts


def directives(script: str) -> list[tuple[str, str | None]]:
    return [(given.option.long, given.text) for given in chain(*parse_directives(script))]


def test_directives_are_read_until_the_first_command_and_only_there() -> None:
    script = """#!/bin/bash

#SBATCH -J one -N 2   # several on a line
# SBATCH -J inert
##SBATCH -J inert
 #SBATCH -J inert
#ODC --time=5
#ODCX is a comment
#SBATCH--mem=4G
\t
#SBATCH
set -e
#SBATCH -J late
"""
    assert directives(script) == [
        ("job-name", "one"), ("nodes", "2"), ("time", "5"), ("mem", "4G"),
    ]  # fmt: skip
    assert late_directive(script) == 13


def test_a_directive_inside_a_command_is_not_a_late_directive() -> None:
    assert late_directive("#!/bin/sh\n#SBATCH -N1\necho '#SBATCH'\n") is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("#SBATCH --nope", 'line 3 of the script, unrecognized option "--nope"'),
        ("#SBATCH --comment=a b", 'line 3 of the script, "b" is not an option'),
        ("#SBATCH=--time=5", 'line 3 of the script, "=--time=5" is not an option'),
        ("#SBATCH --comment='a", "line 3 of the script, the quote ' is not closed"),
        ("#SBATCH --time", "line 3 of the script, option -t/--time needs a value"),
        ("#SBATCH --wrap=x", "line 3 of the script, --wrap cannot be used inside a script"),
        ("#SBATCH -J " + "x" * 70_000, "line 3 of the script has 70011 characters"),
    ],
)
def test_a_wrong_directive_is_refused_by_its_line(line: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_directives(f"#!/bin/sh\n\n{line}\n")
    assert message in refused.value.message


@pytest.mark.parametrize("word", ["hetjob", "packjob"])
def test_a_line_separates_the_components_of_a_heterogeneous_job(word: str) -> None:
    groups = parse_directives(f"#!/bin/sh\n#SBATCH -n1\n#SBATCH {word} # next\n#SBATCH -n2 -N1\n")
    assert [[one.text for one in group] for group in groups] == [["1"], ["2", "1"]]


def test_a_script_has_at_most_128_components() -> None:
    with pytest.raises(BadRequest, match="at most 128 components"):
        parse_directives("#!/bin/sh\n" + "#SBATCH hetjob\n" * 128)


def test_a_script_of_nothing_but_comments_is_read_in_linear_time() -> None:
    assert directives("#!/bin/sh\n" + " \t#\n" * 800_000 + "#SBATCH -n1") == [("ntasks", "1")]


@given(st.text(max_size=80) | st.from_regex(r"(#SBATCH|#ODC| |\n|-n|'|\"|=|a)*", fullmatch=True))
def test_any_script_is_read_or_refused(script: str) -> None:
    with suppress(OdcError):
        parse_directives(script)


ENVIRONMENT = {
    "PATH": "/bin",
    "HOME": "/home/a",
    "ODC_SERVER": "here",
    "SLURM_CONF": "/etc/slurm.conf",
    "SLURM_JOB_ID": "7",
    "SLURM_ARRAY_TASK_ID": "3",
    "ODC_JOB_ID": "7",
}


@pytest.mark.parametrize(
    ("export", "environment"),
    [
        (
            "ALL",
            {
                "PATH": "/bin",
                "HOME": "/home/a",
                "ODC_SERVER": "here",
                "SLURM_CONF": "/etc/slurm.conf",
            },
        ),
        ("NONE", {"SLURM_CONF": "/etc/slurm.conf"}),
        ("NIL", {"SLURM_CONF": "/etc/slurm.conf"}),
        ("PATH,X=1", {"PATH": "/bin", "X": "1", "SLURM_CONF": "/etc/slurm.conf"}),
        (
            "X='a,b',Y=\"c d\",Z=",
            {"X": "a,b", "Y": "c d", "Z": "", "SLURM_CONF": "/etc/slurm.conf"},
        ),
        ("NOT_THERE,X=a=b", {"X": "a=b", "SLURM_CONF": "/etc/slurm.conf"}),
        ("SLURM_ARRAY_TASK_ID", {"SLURM_ARRAY_TASK_ID": "3", "SLURM_CONF": "/etc/slurm.conf"}),
    ],
)
def test_export_passes_only_the_listed_variables(export: str, environment: dict[str, str]) -> None:
    got = exported(ENVIRONMENT, parse_export(export))
    assert got == environment | {"SLURM_EXPORT_ENV": export}


def test_all_with_a_list_adds_to_the_whole_environment() -> None:
    got = exported(ENVIRONMENT, parse_export("ALL,PATH=/opt/bin,NEW=1"))
    assert (got["PATH"], got["NEW"], got["HOME"]) == ("/opt/bin", "1", "/home/a")


def test_a_job_submitted_from_inside_a_job_does_not_inherit_that_jobs_identity() -> None:
    names = [
        "SLURM_JOB_ID",
        "SLURM_JOBID",
        "SLURM_ARRAY_JOB_ID",
        "SLURM_ARRAY_TASK_ID",
        "SLURM_NTASKS",
        "SLURM_NPROCS",
        "SLURM_PROCID",
        "SLURM_STEP_ID",
        "SLURM_CPUS_PER_TASK",
        "SLURM_GPUS_ON_NODE",
        "SLURM_RESTART_COUNT",
        "SLURM_NNODES",
        "SLURM_NODELIST",
        "SLURM_SUBMIT_DIR",
        "SLURMD_NODENAME",
        "SLURM_MEM_PER_NODE",
        "SLURM_TASKS_PER_NODE",
        "SLURM_TASK_PID",
        "SRUN_CPUS_PER_TASK",
        "ODC_JOB_ID",
        "ODC_ARRAY_TASK_ID",
    ]
    assert exported(dict.fromkeys(names, "1"), Settings().export) == {}


@pytest.mark.parametrize("text", ["", " ", "ALL,NONE", "NONE,X=1", "X=1,2", "a b=1", "1X", "X='a"])
def test_an_export_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_export(text)


def test_variables_give_options_and_empty_ones_do_not() -> None:
    environment = {
        "SBATCH_PARTITION": "h100",
        "SBATCH_TIMELIMIT": "",
        "SBATCH_NO_REQUEUE": "1",
        "SBATCH_EXCLUSIVE": "1",
        "SBATCH_UNKNOWN": "x",
    }
    given = variable_options(environment, OPTIONS)
    assert sorted((one.option.long, one.text) for one in given) == [
        ("exclusive", None), ("no-requeue", None), ("partition", "h100"),
    ]  # fmt: skip
