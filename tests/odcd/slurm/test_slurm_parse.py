from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odcd.errors import BadRequest, NotImplementedYet, OdcError, TooLarge
from odcd.records.fields import UNLIMITED_S
from odcd.records.job import MAX_SCRIPT_BYTES, JobSpec
from odcd.slurm.option_values import Settings
from odcd.slurm.parse import ParsedSubmit, ScriptNeeded, parse_submit
from odcd.slurm.reference import reference_page
from odcd.slurm.request import SubmitArgv
from odcd.slurm.sbatch_options import BY_LONG, BY_SHORT, OPTIONS, REFUSED, SUPPORTED

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
SCRIPT = "#!/bin/sh\ntrue\n"


def parse(*argv: str, script: str | None = None, **fields: object) -> ParsedSubmit:
    body = {"argv": list(argv), "work_dir": "/home/a", "script": script} | fields
    return parse_submit(msgspec.convert(body, SubmitArgv), NOW)


def spec(*argv: str, script: str | None = SCRIPT, **fields: object) -> JobSpec:
    return parse(*argv, "x.sh", script=script, **fields).spec


# -- what runs ------------------------------------------------------------------------------------


def test_a_script_that_was_not_sent_is_requested_by_name() -> None:
    for argv, path in ((["dir/x.sh", "a"], "dir/x.sh"), ([], "-"), (["-"], "-")):
        with pytest.raises(ScriptNeeded) as needed:
            parse(*argv)
        assert (needed.value.script_path, needed.value.status) == (path, 409)


def test_a_wrong_option_is_refused_before_the_script_is_requested() -> None:
    with pytest.raises(BadRequest, match='--time: "x" is not a time limit'):
        parse("--time=x", "x.sh")
    with pytest.raises(BadRequest, match="SBATCH_TIMELIMIT, --time"):
        parse("x.sh", environment={"SBATCH_TIMELIMIT": "x"})


def test_without_a_script_on_a_terminal_nothing_is_waited_for() -> None:
    with pytest.raises(BadRequest, match="no script was given"):
        parse(stdin_is_tty=True)


def test_arguments_behind_the_script_are_the_scripts() -> None:
    job = parse("-n2", "/a/train.sh", "--time", "b c", script=SCRIPT).spec
    assert (job.args, job.name, job.ntasks, job.time_limit_s) == (
        ["--time", "b c"],
        "train.sh",
        2,
        None,
    )
    assert job.submit_line == "odcctl submit -n2 /a/train.sh --time 'b c'"


def test_a_script_from_standard_input_is_named_as_sbatch_names_it() -> None:
    assert parse(script=SCRIPT).spec.name == "sbatch"


def test_wrap_makes_a_shell_script() -> None:
    job = parse("--wrap", "echo 'a b' | wc").spec
    assert job.script.startswith("#!/bin/sh\n")
    assert job.script.endswith("\necho 'a b' | wc\n")
    assert (job.name, job.args) == ("wrap", [])


def test_a_command_behind_dashes_is_executed_with_its_arguments() -> None:
    job = parse("-c2", "--", "/usr/bin/python", "-t", "x y").spec
    assert job.script == '#!/bin/sh\nexec "$@"\n'
    assert (job.args, job.name) == (["/usr/bin/python", "-t", "x y"], "python")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--wrap=a", "x.sh"], "cannot be used together"),
        (["--wrap= "], "the command is empty"),
        (["--"], "no command was given"),
        ([""], "the name of the script is empty"),
        (["--pty", "x.sh"], "submit does not accept --pty"),
        (["a\0b"], "NUL"),
    ],
)
def test_a_command_line_that_names_nothing_to_run_is_refused(argv: list[str], message: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(message)):
        parse(*argv)


def test_a_script_sent_with_a_command_line_that_names_none_is_refused() -> None:
    with pytest.raises(BadRequest, match="names none"):
        parse("--wrap=x", script=SCRIPT)


def test_run_takes_a_command_and_spools_its_output() -> None:
    parsed = parse("-G1", "--pty", "bash", "-l", command="run")
    job = parsed.spec
    assert (job.args, job.name, job.pty, job.spool_output, parsed.wait) == (
        ["bash", "-l"], "bash", True, True, True,
    )  # fmt: skip
    assert not parse("-o", "out", "hostname", command="run").spec.spool_output
    assert parse("-o", "out", "-e", "err", "hostname", command="run").spec.stderr == "err"
    with pytest.raises(BadRequest, match="--error alone would have no effect"):
        parse("-e", "err", "hostname", command="run")


def test_run_refuses_options_that_it_cannot_follow() -> None:
    for argv in (["--array=1-3", "true"], ["--wrap=x"], []):
        with pytest.raises(OdcError):
            parse(*argv, command="run")
    with pytest.raises(OdcError, match="odcctl run cannot run a heterogeneous job"):
        parse("--gres=gpu:1", ":", "-n1", "--", "true", command="run")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "the script is empty"),
        ("echo\n", "is not a batch script"),
        ("#!\necho\n", "is not a batch script"),
        (" #!/bin/sh\n", "is not a batch script"),
        ("#!/bin/sh\r\necho\r\n", "DOS line breaks"),
        ("#!/bin/sh\n\0", "NUL byte"),
    ],
)
def test_an_invalid_script_is_refused(script: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        spec(script=script)


def test_a_script_may_have_4_mib_and_not_a_byte_more() -> None:
    full = "#!/bin/sh\n#" + "ä" * ((MAX_SCRIPT_BYTES - 11) // 2)
    full += "x" * (MAX_SCRIPT_BYTES - len(full.encode()))
    assert spec(script=full).script == full
    with pytest.raises(TooLarge, match=str(MAX_SCRIPT_BYTES + 1)):
        spec(script=full + "x")


# -- precedence -----------------------------------------------------------------------------------

HEADER = "#!/bin/sh\n#SBATCH -J script -p script -t 1\n"


def test_the_command_line_beats_variables_and_variables_beat_the_script() -> None:
    environment = {"SBATCH_PARTITION": "variable", "SBATCH_JOB_NAME": "variable"}
    job = spec("-J", "line", script=HEADER, environment=environment)
    assert (job.name, job.partitions, job.time_limit_s) == ("line", ["variable"], 60)


def test_the_last_of_equal_options_wins_and_odc_lines_count_like_sbatch_lines() -> None:
    assert spec("-n1", "-n2").ntasks == 2
    assert spec(script="#!/bin/sh\n#SBATCH -n1\n#ODC -n2\n").ntasks == 2
    assert spec(script="#!/bin/sh\n#ODC -n2\n#SBATCH -n1\n").ntasks == 1
    assert spec("--requeue", "--no-requeue").requeue is False


def test_options_that_overrule_one_another_do_so_between_sources() -> None:
    script = "#!/bin/sh\n#SBATCH --mem-per-cpu=1G --cpus-per-gpu=4 --gres=gpu:h100:2\n"
    job = spec("--mem=8G", "-c3", "--gpus-per-node=a100:1", script=script)
    assert (job.mem_per_node_mib, job.mem_per_cpu_mib) == (8192, None)
    assert (job.cpus_per_task, job.cpus_per_gpu) == (3, None)
    assert (job.gpus_per_node, job.gpu_type) == (1, "a100")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--mem=1G", "--mem-per-cpu=1G"], "--mem and --mem-per-cpu cannot be used together"),
        (["-c2", "--cpus-per-gpu=2"], "--cpus-per-gpu and --cpus-per-task cannot be used together"),
        (["--gres=gpu:2", "--gpus-per-node=4"], "--gres requests 2 GPUs on each node"),
        (["--gres=gpu:h100:2", "--gpus=a100:2"], "the GPU type is ambiguous"),
        (["--gpus=8", "--gpus-per-node=2", "-N2"], "do not match"),
    ],
)
def test_options_that_contradict_one_another_are_refused(argv: list[str], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        spec(*argv)


def test_options_that_say_the_same_twice_pass() -> None:
    job = spec("--gres=gpu:2", "--gpus-per-node=h100:2", "-N2", "--gpus=4")
    assert (job.gpus_per_node, job.gpus, job.gpu_type, job.node_count) == (2, 4, "h100", 2)


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "field", "value"),
    [
        (["-N", "2-2"], "node_count", 2),
        (["-N", "2-2"], "node_count_max", None),
        (["-N", "2-4"], "node_count", 2),
        (["--nodes=2-4"], "node_count_max", 4),
        (["--switches=2"], "switches", 2),
        (["--switches=2"], "switches_wait_s", 300),
        (["--switches=2@30"], "switches_wait_s", 1800),
        (["--switches=2@0"], "switches_wait_s", 0),
        (["--switches=2@0:30"], "switches_wait_s", 30),
        (["--switches=2@UNLIMITED"], "switches_wait_s", UNLIMITED_S),
        (["-N2-4", "--gpus=8", "--gres=gpu:4"], "gpus", 8),
        (["-p", "a, b,a"], "partitions", ["a", "b"]),
        (["-w", "n[1-2]"], "node_list", ["n1", "n2"]),
        (["--exclude=n1"], "exclude_nodes", ["n1"]),
        (["--exclusive"], "exclusive", True),
        (["--nice"], "nice", 100),
        (["--nice=-3"], "nice", -3),
        (["-t", "UNLIMITED"], "time_limit_s", UNLIMITED_S),
        (["--time=0:30"], "time_limit_s", 30),
        (["--mem=0"], "mem_per_node_mib", 0),
        (["--begin=now+1hour"], "begin_at", NOW + timedelta(hours=1)),
        (["--deadline=2026-06-01"], "deadline_at", datetime(2026, 6, 1, tzinfo=UTC)),
        (["-D", "sub/dir/"], "work_dir", "/home/a/sub/dir"),
        (["-D", "/abs"], "work_dir", "/abs"),
        (["-o", "%j-%z-%4t.out"], "stdout", "%j-%z-%4t.out"),
        (["--open-mode=APPEND"], "open_mode", "append"),
        (["-a", "0-9%2"], "array", "0-9%2"),
        (["-d", "afterok:7"], "dependency", "afterok:7"),
        (["--signal=B:USR1@30"], "signal_batch", True),
        (["--requeue"], "requeue", True),
        (["-H"], "hold", True),
    ],
)  # fmt: skip
def test_an_option_reaches_its_field(argv: list[str], field: str, value: object) -> None:
    assert getattr(spec(*argv, environment={"TZ": "UTC"}), field) == value


def test_options_for_the_client_are_handed_back() -> None:
    parsed = parse("-W", "--parsable", "--test-only", "-Q", "x.sh", script=SCRIPT)
    assert (parsed.wait, parsed.parsable, parsed.test_only, parsed.quiet) == (True,) * 4


def test_options_behind_the_first_command_are_warned_of() -> None:
    parsed = parse("x.sh", script="#!/bin/sh\necho\n#SBATCH -n 5\n")
    assert parsed.spec.ntasks is None
    assert parsed.warnings == (
        "line 3 of the script: options after the first command have no effect",
    )


def test_verbose_lists_the_effective_options() -> None:
    script = "#!/bin/sh\n#SBATCH -t 9 --gres=gpu:1 --hold\n"
    warnings = parse("-v", "-t5", "--gres=gpu:h100:4", "x.sh", script=script).warnings
    assert sorted(warnings) == ["--gres=gpu:h100:4", "--hold", "--time=5"]


@pytest.mark.parametrize("option", REFUSED, ids=lambda option: option.long)
def test_an_option_that_odc_does_not_carry_out_is_refused_everywhere(option: object) -> None:
    refused = BY_LONG[option.long]  # type: ignore[attr-defined]
    flag = refused.flag if refused.argument != "required" else f"{refused.flag}=1"
    with pytest.raises(NotImplementedYet) as on_line:
        parse(flag, "x.sh", script=SCRIPT)
    assert refused.flag in on_line.value.message
    with pytest.raises(NotImplementedYet, match="line 2 of the script"):
        parse("x.sh", script=f"#!/bin/sh\n#SBATCH {flag}\n")
    for variable in refused.variables:
        with pytest.raises(NotImplementedYet, match=variable):
            parse("x.sh", script=SCRIPT, environment={variable: "1"})


def test_values_that_match_the_behaviour_of_odc_pass_and_others_are_refused() -> None:
    spec("--gpu-bind=none", "--wait-all-nodes=1", "--kill-on-invalid-dep=no", "--ignore-pbs")
    for flag in ("--gpu-bind=closest", "--wait-all-nodes=0", "--kill-on-invalid-dep=yes"):
        with pytest.raises(NotImplementedYet):
            spec(flag)


def test_options_that_change_nothing_essential_are_accepted_with_one_warning() -> None:
    header = "#!/bin/sh\n#SBATCH --mail-type=END --mail-user=a@b\n#SBATCH --hint=nomultithread\n"
    parsed = parse(
        "--get-user-env", "--mem-bind=local", "--gpu-bind=none", "--tmp=1G", "x.sh", script=header,
        environment={"SBATCH_WCKEY": "k"},
    )  # fmt: skip
    [warning] = parsed.warnings
    assert warning.startswith(
        "options without effect: --mail-type (this server sends no mail), --mail-user"
    )
    for name in ("hint", "wckey", "get-user-env", "mem-bind"):
        assert f"--{name} (" in warning
    assert parsed.spec.tmp_mib == 1024
    assert parse("--mail-type=NONE", "x.sh", script=SCRIPT).warnings == ()
    assert parse("x.sh", script=header, command="sbatch").warnings == ()


def test_all_errors_of_a_request_are_listed_at_once() -> None:
    script = "#!/bin/sh\n#SBATCH --nodes=x\n#SBATCH --bogus\n#SBATCH words\ntrue\n"
    with pytest.raises(BadRequest) as refused:
        parse("--time=soon", "x.sh", script=script, environment={"SBATCH_GRES": "tpu:1"})
    message = refused.value.message
    assert message.startswith("5 errors: ")
    for part in ("line 2 of the script, --nodes", 'line 3 of the script, unrecognized option "--b',
                 'line 4 of the script, "words"', "SBATCH_GRES, --gres", "--time: "):  # fmt: skip
        assert part in message
    with pytest.raises(NotImplementedYet, match=r"2 errors: --uid=1 is refused: .*; --gid=1 is"):
        parse("--uid=1", "--gid=1", "x.sh")
    with pytest.raises(BadRequest, match=r"2 errors: unrecognized option .*; --time: ") as refused:
        parse("--bogus", "--time=soon", "x.sh")
    assert "--time: Accepted: M, M:S" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "flag",
    [
        *(
            "--nodes=2,4",
            "--nodes=1-8:2",
            "--nodes=0",
            "--nodes=2-1",
            "--nodes=1-",
            "--nodes=0-2",
            "--switches=0",
            "--switches=x",
            "--switches=1@",
            "--switches=1@soon",
            "-n-1",
            "-n1.5",
            "-c0",
            "--gpus=1x",
            "--gres=",
            "--mem=x",
            "-t=5",
        ),
        *(
            "--nice=x",
            "--open-mode=x",
            "-p,",
            "--job-name=",
            "--job-name=" + "x" * 201,
            "-D",
            "--array=x",
        ),
        *("--dependency=x", "--begin=x", "--signal=x", "--export=", "--comment=" + "x" * 4097),
    ],
)
def test_a_wrong_value_is_refused_with_the_options_name(flag: str) -> None:
    name = flag.split("=")[0] if flag.startswith("--") else BY_SHORT[flag[1]].flag
    with pytest.raises(OdcError) as refused:
        parse(flag)
    assert name in refused.value.message


@pytest.mark.parametrize("flag", ["-N2,4", "--exclusive=user", "-w/etc/hosts", "--gres=shard:1"])
def test_planned_options_are_refused_as_not_implemented_yet(flag: str) -> None:
    with pytest.raises(NotImplementedYet):
        spec(flag)


@pytest.mark.parametrize(
    "option",
    ["--dependency=afterok:5", "--begin=now+1hour", "--hold", "--no-requeue", "--nice=7",
     "--output=b.out", "--chdir=/tmp", "--export=NONE", "--signal=USR1@60", "--comment=b"],
)  # fmt: skip
def test_an_option_of_the_whole_job_has_an_effect_in_any_component_or_is_refused(
    option: str,
) -> None:
    """Before: in a later component it was accepted and did nothing."""
    with pytest.raises(BadRequest, match="belongs to the whole job"):
        spec("-N1", ":", "-N1", option)
    once, twice = spec("-N1", option, ":", "-N1"), spec("-N1", option, ":", "-N1", option)
    assert msgspec.structs.replace(twice, submit_line=once.submit_line) == once


def test_the_components_of_a_command_line_and_a_script_are_joined() -> None:
    script = "#!/bin/sh\n#SBATCH -n1 -A red -t5\n#SBATCH hetjob\n#SBATCH -n2 -c3 -t9\ntrue\n"
    found = spec("--gpus=1", ":", "-c4", script=script)
    assert [(one.ntasks, one.cpus_per_task, one.gpus) for one in found.components] == [
        (1, None, 1), (2, 4, None),
    ]  # fmt: skip
    assert (found.account, found.time_limit_s, found.ntasks) == ("red", 540, None)
    assert found.runs_on_first_node


@pytest.mark.parametrize(
    ("argv", "lines", "tasks"),
    [((), "#SBATCH hetjob\n#SBATCH -n2\n", [None, 2]), ((), "#SBATCH hetjob\n", [None, None]),
     ((), "#SBATCH -n2\n#SBATCH hetjob\n#SBATCH hetjob\n#SBATCH -n3\n", [2, None, 3]),
     ((":", "-n2"), "", [None, 2]), (("-n2", ":"), "", [2, None])],
)  # fmt: skip
def test_a_component_without_options_has_the_defaults(
    argv: tuple[str, ...], lines: str, tasks: list[int | None]
) -> None:
    """As in Slurm: a task on one node."""
    found = spec(*argv, script=f"#!/bin/sh\n{lines}true\n")
    assert [one.ntasks for one in found.components] == tasks
    assert {one.node_count for one in found.components} == {None}


def test_a_component_gets_the_options_of_those_before_it_that_slurm_passes_on() -> None:
    found = spec("-Jone", "-n4", "-A", "red", ":", "-n1", ":", "-Jtwo", "-c2")
    assert [(one.name, one.ntasks, one.cpus_per_task) for one in found.components] == [
        ("one", 4, None), ("one", 1, None), ("two", None, 2),
    ]  # fmt: skip
    assert (found.account, found.name) == ("red", "one")


@pytest.mark.parametrize(
    ("argv", "words"),
    [(["-Ared", ":", "-Ablue"], "have one account"), (["-n1", ":", "--array=1-2"], "--array"),
     (["-N1-2", ":", "-n1"], "^--nodes: .* fixed number of nodes$"),
     (["-N4", "--switches=1", ":", "-n1"], "^--switches: "),
     (["-p", "a", ":", "-n1"], "one partition"),
     (["-n1", ":", "-n1", "--wrap=true"], "--wrap")],
)  # fmt: skip
def test_components_that_do_not_go_together_are_refused(argv: list[str], words: str) -> None:
    with pytest.raises(OdcError, match=words):
        spec(*argv)


# -- the table ------------------------------------------------------------------------------------


def test_every_name_letter_and_variable_stands_for_one_option() -> None:
    assert len(BY_LONG) == len(OPTIONS)
    letters = [option.short for option in OPTIONS if option.short]
    variables = [variable for option in OPTIONS for variable in option.variables]
    assert len(set(letters)) == len(letters)
    assert len(set(variables)) == len(variables)


def test_every_supported_option_fills_a_setting_that_exists() -> None:
    for option in SUPPORTED:
        assert option.setting is not None
        assert hasattr(Settings(), option.setting)


P0 = (
    "job-name time output error nodes ntasks ntasks-per-node cpus-per-task partition account "
    "gres gpus gpus-per-node gpus-per-task mem mem-per-cpu mem-per-gpu cpus-per-gpu "
    "constraint qos exclusive array dependency nodelist exclude signal requeue no-requeue "
    "open-mode export chdir wrap parsable wait hold begin comment test-only nice input"
)


def test_every_option_of_the_first_priority_is_carried_out() -> None:
    assert set(P0.split()) <= {option.long for option in SUPPORTED}


def test_the_reference_page_is_the_tables() -> None:
    page = Path("docs/reference/submit-options.md").read_text(encoding="utf-8")
    assert page == reference_page(), (
        "run: python -m odcd.slurm.reference docs/reference/submit-options.md"
    )


# -- real headers ---------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.sh")), ids=lambda path: path.stem)
def test_a_real_header_comes_to_the_job_it_asks_for(path: Path) -> None:
    job = parse(path.name, script=path.read_text(encoding="utf-8"), environment={"TZ": "UTC"}).spec
    defaults = JobSpec(script="", work_dir="")
    plain = {
        name: value
        for name, value in msgspec.to_builtins(job).items()
        if name not in ("script", "environment", "submit_line")
        and getattr(job, name) != getattr(defaults, name)
    }
    expected = path.with_suffix(".json").read_text(encoding="utf-8")
    assert msgspec.json.format(msgspec.json.encode(plain)).decode() + "\n" == expected


# -- anything -------------------------------------------------------------------------------------

FLAGS = st.sampled_from([option.flag for option in OPTIONS]) | st.text(max_size=8)
VALUES = st.text(max_size=10) | st.sampled_from(
    [
        "1",
        "0",
        "1-2",
        "2-2",
        "gpu:2",
        "h100:1",
        "now",
        "5:00",
        "ALL,X=1",
        "afterok:1",
        "n[1-3]",
        "B:9@1",
    ]
)


@settings(max_examples=300)
@given(
    st.lists(st.builds(lambda flag, value: f"{flag}={value}", FLAGS, VALUES) | VALUES, max_size=6),
    st.none() | st.lists(FLAGS, max_size=4).map(lambda f: "#!/bin/sh\n#SBATCH " + " ".join(f)),
    st.dictionaries(st.sampled_from(["SBATCH_GRES", "SBATCH_WAIT", "TZ", "SBATCH_EXPORT"]), VALUES),
    st.sampled_from(["submit", "run"]),
)
def test_any_submit_is_a_job_or_a_refusal(
    argv: list[str], script: str | None, environment: dict[str, str], command: str
) -> None:
    with suppress(OdcError):
        parse(*argv, script=script, environment=environment, command=command)


@pytest.mark.long
@pytest.mark.parametrize(
    "fields",
    [
        {"argv": ["-w", "n" * 1_000_000]},
        {"argv": ["-w", "n," * 500_000]},
        {"argv": ["--export", "X='" + "a" * 1_000_000]},
        {"argv": ["--export", "X=" + "a,b" * 300_000]},
        {"argv": ["--array", "1," * 500_000]},
        {"argv": ["--dependency", "afterok:1," * 100_000]},
        {"argv": ["--begin", "now " * 200_000]},
        {"argv": ["-H" * 100_000]},
        {"argv": ["--hold"] * 100_000},
        {"argv": [], "script": "#!/bin/sh\n" + ("#SBATCH '" + "a" * 65_000 + "'\n") * 60},
        {"argv": [], "script": "#!/bin/sh\n" + "#SBATCH -n1\n" * 300_000},
        {"argv": [], "script": "#!/bin/sh\n" + " # \n" * 900_000 + "x\n#SBATCH\n"},
    ],
    ids=lambda fields: str(fields)[:60],
)
def test_huge_input_is_read_or_refused_without_quadratic_work(fields: dict[str, object]) -> None:
    # Work that grows with the square of these texts would take minutes.
    with suppress(OdcError):
        parse_submit(msgspec.convert({"work_dir": "/home/a"} | fields, SubmitArgv), NOW)


# -- bookings and licences ------------------------------------------------------------------------


def test_a_booking_is_named_by_either_option_and_by_its_variable() -> None:
    assert spec("--reservation=b-1").booking == "b-1"
    assert spec("--booking", "b").booking == "b"
    assert spec(environment={"SBATCH_RESERVATION": "b"}).booking == "b"
    assert spec("--booking=c", environment={"SBATCH_RESERVATION": "b"}).booking == "c"
    assert spec().booking is None


def test_licences_are_names_with_counts() -> None:
    assert spec("-L", "matlab").licences == {"matlab": 1}
    assert spec("--licenses=matlab:2, ansys@site,matlab=3").licences == {
        "matlab": 5, "ansys@site": 1,
    }  # fmt: skip
    assert spec("-L", "").licences == {}


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        ("--reservation=", BadRequest), ("--reservation=a b", BadRequest),
        ("--reservation=a,b", NotImplementedYet), ("--licenses=a|b", NotImplementedYet),
        ("--licenses=:2", BadRequest), ("--licenses=a:0", BadRequest),
        ("--licenses=a:x", BadRequest), ("--licenses=a,,b", BadRequest),
        ("--licenses=a:999999,a:2", BadRequest),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_an_invalid_booking_or_licence_is_refused(option: str, kind: type[OdcError]) -> None:
    with pytest.raises(kind) as refused:
        spec(option)
    assert option.partition("=")[0] in refused.value.message
    assert refused.value.hint
