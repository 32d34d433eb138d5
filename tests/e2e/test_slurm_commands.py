"""Slurm's commands against the real daemon, PostgreSQL and runner."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.slurm_commands import Commands, normalised, slurm_commands

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def slurm(seed: Path) -> Iterator[Commands]:
    with slurm_commands(seed) as commands:
        yield commands


def golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    cut = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    if os.environ.get("ODC_UPDATE_GOLDEN") == "1":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(cut)
    assert cut == path.read_text()


UNSENT = (
    "sbatch: warning: options without effect: --mail-type (this server sends no mail), "
    "--mail-user (this server sends no mail)\n"
)


def test_mail_that_is_not_sent_causes_a_warning_unless_a_program_reads_the_id(
    slurm: Commands,
) -> None:
    mail = ("--mail-type=END", "--mail-user=a@b", "--wrap", "true")
    assert slurm.run("sbatch", *mail).stderr == UNSENT
    for quiet in ("--parsable", "-Q"):
        assert slurm.run("sbatch", quiet, *mail).stderr == ""
    assert slurm.run("salloc", *mail[:2], "true").stderr.count(UNSENT[len("sbatch") :]) == 1
    assert slurm.run("srun", *mail[:2], "true").stderr == UNSENT.replace("sbatch", "srun")


def test_sbatch_submits_an_unmodified_script_and_prints_slurms_line(slurm: Commands) -> None:
    (slurm.odc.work / "train.sh").write_text(
        "#!/bin/bash\n\n#SBATCH -J first --time=0:5:0\n#SBATCH\t--ntasks=1\n"
        "#SBATCH --mail-type=END --mail-user=a@b --wckey=x\n"
        'echo "$SLURM_JOB_NAME $# $2"\n'
    )
    done = slurm.run("sbatch", "train.sh", "a", "b c")
    found = re.fullmatch(r"Submitted batch job (\d+)\n", done.stdout)
    assert found is not None, done
    assert done.stderr == UNSENT
    assert slurm.wait(found[1], "COMPLETED") == "COMPLETED"
    assert (slurm.odc.work / f"slurm-{found[1]}.out").read_text() == "first 2 b c\n"


def test_sbatch_reads_a_script_from_standard_input(slurm: Commands) -> None:
    job = slurm.sbatch("-H", stdin="#!/bin/sh\n#SBATCH -J from-stdin\ntrue\n")
    assert slurm.out("squeue", "-h", "-j", str(job), "-o", "%j %T %r") == (
        "from-stdin PENDING JobHeldUser\n"
    )


def test_sbatch_wait_returns_the_exit_code_of_the_job(slurm: Commands) -> None:
    assert slurm.run("sbatch", "--wait", "--wrap", "exit 3", code=3).stdout.startswith("Submitted")
    slurm.run("sbatch", "--wait", "--wrap", "kill -9 $$", code=1)
    slurm.run("sbatch", "-W", "--wrap", "true", code=0)


@pytest.mark.parametrize(
    ("argv", "stderr", "code"),
    [
        (("--no-such",), "sbatch: unrecognized option '--no-such'\n", 255),
        (("-t", "soon", "--wrap=true"), "sbatch: error: Invalid --time specification\n", 255),
        (("nowhere.sh",), "sbatch: error: Unable to open file nowhere.sh\n", 1),
        (
            ("-p", "nope", "--wrap=true"),
            "sbatch: error: invalid partition specified: nope\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
            1,
        ),
        (
            ("--mem=99T", "--wrap=true"),
            "sbatch: error: Batch job submission failed: "
            "Requested node configuration is not available\n",
            1,
        ),
        (
            ("-A", "nope", "--wrap=true"),
            "sbatch: error: Batch job submission failed: "
            "Invalid account or account/partition combination specified\n",
            1,
        ),
        (
            ("--array=1-", "--wrap=true"),
            "sbatch: error: Batch job submission failed: Invalid job array specification\n",
            1,
        ),
    ],
)
def test_sbatch_refuses_in_slurms_words(
    slurm: Commands, argv: tuple[str, ...], stderr: str, code: int
) -> None:
    before = slurm.out("squeue", "-h", "-t", "all", "-o", "%A")
    done = slurm.run("sbatch", *argv, code=code)
    assert done.stdout == ""
    assert done.stderr.startswith(stderr)
    assert slurm.out("squeue", "-h", "-t", "all", "-o", "%A") == before


def test_a_file_without_a_shebang_is_not_a_batch_script(slurm: Commands) -> None:
    done = slurm.run("sbatch", stdin="echo hi\n", code=1)
    assert done.stderr == (
        "sbatch: error: This does not look like a batch script.  The first\n"
        "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
        "sbatch: error: For instance: #!/bin/sh\n"
    )


def test_the_script_runs_on_the_first_node_only(slurm: Commands) -> None:
    command = 'echo "$SLURMD_NODENAME $SLURM_NODEID $SLURM_JOB_NUM_NODES"; exit 4'
    job = slurm.sbatch("-N", "3", "-w", "n[1-3]", "-o", "first.out", "--wrap", command)
    assert slurm.wait(job, "FAILED", "COMPLETED") == "FAILED"
    lines = (slurm.odc.work / "first.out").read_text().splitlines()
    nodes = slurm.out("sacct", "-X", "-n", "-P", "-o", "NodeList", "-j", str(job)).strip()
    first = slurm.out("scontrol", "show", "hostnames", nodes).splitlines()[0]
    assert lines == [f"{first} 0 3"]
    assert slurm.out("sacct", "-X", "-n", "-P", "-o", "ExitCode", "-j", str(job)) == "4:0\n"


def test_fewer_tasks_than_nodes_need_fewer_nodes(slurm: Commands) -> None:
    warning = "warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n"
    done = slurm.run("sbatch", "--parsable", "-H", "-n1", "-N2", "-w", "n[1-2]", "--wrap", "true")
    assert done.stderr == f"sbatch: {warning}"
    found = slurm.out("squeue", "-h", "-j", done.stdout.strip(), "-o", "%D %c %z %H")
    assert found == "1 1 *:*:* *\n"
    assert slurm.out("sbatch", "-Q", "-H", "-n1", "-N2", "--wrap", "true") == ""
    # odcctl's own language refuses it.
    refused = slurm.odc.odcctl("submit", "-n1", "-N2", "--wrap", "true", check=False)
    assert "1 tasks cannot run on 2 nodes" in refused.stderr


def test_entities_of_scontrol_show_may_be_shortened(slurm: Commands) -> None:
    job = slurm.sbatch("-H", "--wrap", "true")
    whole = slurm.out("scontrol", "show", "job", str(job))
    for words in (("j", str(job)), ("jobid", str(job)), (f"job={job}",), (f"JobId={job}",)):
        assert slurm.out("scontrol", "show", *words) == whole
    assert slurm.out("scontrol", "show", "part", "-o").startswith("PartitionName=")
    assert slurm.out("scontrol", "show", "no", "n1").startswith("NodeName=n1 ")
    assert (
        slurm.run("scontrol", "show", "p", code=1).stderr == "invalid entity:p for keyword:show \n"
    )


def test_launch_all_runs_the_script_on_every_node(slurm: Commands) -> None:
    job = slurm.sbatch("-N", "3", "--launch=all", "-o", "all.out", "--wrap", "echo $SLURM_NODEID")
    assert slurm.wait(job, "COMPLETED", "FAILED") == "COMPLETED"
    assert sorted((slurm.odc.work / "all.out").read_text().split()) == ["0", "1", "2"]


def test_signals_for_a_job_do_not_end_the_members_that_hold_its_nodes(slurm: Commands) -> None:
    job = slurm.sbatch(
        "-N", "2", "-o", "signal.out", "--wrap",
        "trap 'echo got; exit 0' USR1; echo ready; while :; do sleep 0.05; done",
    )  # fmt: skip
    out = slurm.odc.work / "signal.out"
    slurm.until(lambda: out.exists() and "ready" in out.read_text())
    slurm.run("scancel", "--signal", "USR1", "--full", str(job))
    assert slurm.wait(job, "COMPLETED", "FAILED", "CANCELLED") == "COMPLETED"


def test_jobs_find_the_commands_on_their_path(slurm: Commands) -> None:
    command = "squeue -h -j $SLURM_JOB_ID -o '%A %T'; scontrol show hostnames | wc -l"
    for export in ("ALL", "NONE"):
        job = slurm.sbatch(f"--export={export}", "-o", "inside.out", "--wrap", command)
        slurm.wait(job, "COMPLETED")
        assert (slurm.odc.work / "inside.out").read_text() == f"{job} RUNNING\n1\n"


def test_an_array_has_slurms_ids(slurm: Commands) -> None:
    job = slurm.sbatch("--array=0-2", "--wrap", "true")
    slurm.until(lambda: slurm.state(job).split() == ["COMPLETED"] * 3)
    rows = slurm.out("sacct", "-X", "-n", "-P", "-o", "JobID,JobIDRaw", "-j", str(job)).split()
    assert sorted(row.partition("|")[0] for row in rows) == [f"{job}_{task}" for task in range(3)]
    # One task has the array's own number.
    assert str(job) in [row.partition("|")[2] for row in rows]


def test_squeue_j_of_an_unknown_id(slurm: Commands) -> None:
    done = slurm.run("squeue", "-j", "999999", code=1)
    assert done.stderr == "slurm_load_jobs error: Invalid job id specified\n"
    assert slurm.out("squeue", "-h", "-j", "999998,999999") == ""
    assert slurm.out("sacct", "-n", "-j", "999999") == ""
    assert slurm.out("scancel", "999999") == ""
    assert slurm.run("scancel", "-v", "999999").stderr == (
        "scancel: Terminating job 999999\n"
        "scancel: error: Kill job error on job id 999999: Invalid job id specified\n"
    )
    done = slurm.run("scontrol", "requeue", "999999", code=1)
    assert done.stderr == "Invalid job id specified for job 999999\n"
    done = slurm.run("scontrol", "show", "job", "999999", code=1)
    assert done.stderr == "slurm_load_jobs error: Invalid job id specified\n"


def test_usage_errors_have_slurms_exit_codes(slurm: Commands) -> None:
    for argv, stderr in (
        (("squeue", "--no-such"), "squeue: unrecognized option '--no-such'\n"),
        (("squeue", "-o", "%"), "squeue: error: Incomplete format specification: %\n"),
        (("sacct", "-1"), "sacct: invalid option -- '1'\n"),
        (("sacct", "-o", "Nope"), 'sacct: fatal: Invalid field requested: "Nope"\n'),
        (("sinfo", "-O", "nope"), "sinfo: error: Invalid node format specification: nope\n"),
        (("scancel",), "scancel: error: No job identification provided\n"),
        (("scancel", "abc"), "scancel: error: Invalid job id abc\n"),
        (("scontrol", "show", "nope"), "invalid entity:nope for keyword:show \n"),
        (("scontrol", "suspend", "1"), "scontrol: error: suspend is not supported"),
    ):
        done = slurm.run(*argv, code=1)
        assert done.stderr.startswith(stderr), done
        assert done.stdout == ""


def test_an_unknown_letter_is_printed_as_it_is(slurm: Commands) -> None:
    job = slurm.sbatch("-H", "--wrap", "true")
    done = slurm.run("squeue", "-h", "-j", str(job), "-o", "%A %_|%.q|%t")
    assert done.stdout == f"{job} %_|normal|PD\n"
    done = slurm.run("squeue", "-h", "-j", str(job), "-o", "%A %.3")
    assert (done.stdout, done.stderr) == (f"{job} %.3\n", "")


def test_answers_are_those_of_a_real_slurm(slurm: Commands) -> None:
    """Recorded from Slurm 22.05: exit code, standard output, the beginning of standard error."""
    denied = "Invalid job id specified for job 999999\n"
    for line, code, out, err in (
        ("sbatch -n abc", 1, "", 'sbatch: error: Invalid numeric value "abc" for --ntasks.\n'),
        ("sbatch -c 0", 1, "", 'sbatch: error: Invalid numeric value "0" for --cpus-per-task.\n'),
        ("sbatch -N 0", 1, "",
         "sbatch: error: Batch job submission failed: Node count specification invalid\n"),
        ("sbatch -N 5-2", 255, "",
         "sbatch: error: Maximum node count 2 is less than minimum node count 5\n"),
        ("sbatch --gres=foo:1", 1, "",
         "sbatch: error: Invalid generic resource (gres) specification\n"),
        ("sbatch -d foo:1", 1, "",
         "sbatch: error: Batch job submission failed: Job dependency problem\n"),
        ("salloc -p nope true", 1, "",
         "salloc: error: invalid partition specified: nope\n"
         "salloc: error: Job submit/allocate failed: Invalid partition name specified\n"),
        ("srun -p nope true", 1, "",
         "srun: error: invalid partition specified: nope\n"
         "srun: error: Unable to allocate resources: Invalid partition name specified\n"),
        ("srun --bogus true", 255, "", "srun: unrecognized option '--bogus'\n"),
        ("salloc --bogus", 255, "", "salloc: unrecognized option '--bogus'\n"),
        ("srun", 1, "", "srun: fatal: No command given to execute.\n"),
        ("squeue -w nope", 1, "", "squeue: error: Invalid node name nope\n"),
        ("scancel -t FOO -u root", 1, "", "Invalid job state specified: FOO\n"
         "Valid job states are PENDING, RUNNING, and SUSPENDED\n"),
        ("scancel -u no-such-user", 1, "", "scancel: error: Invalid user name: no-such-user\n"),
        ("scontrol show node nope", 1, "Node nope not found\n", ""),
        ("scontrol show partition nope", 1, "Partition nope not found\n", ""),
        ("scontrol hold 999999", 1, "",
         f"{denied}slurm_suspend error: Invalid job id specified\n"),
        ("scontrol update job 999999 timelimit=10", 1, "", denied),
        ("scontrol update", 1, "", "too few arguments for update keyword\n"),
        ("scontrol update foo=bar", 1, "", "No valid entity in update command\n"),
        ("scontrol completing", 0, "", ""),
        ("sinfo -h -o %O,%B,%Z", 0, "N/A,UNLIMITED,1\n", ""),
    ):  # fmt: skip
        argv = line.split()
        done = slurm.run(*argv, *(["--wrap", "true"] if argv[0] == "sbatch" else []), code=code)
        assert done.stdout == out, done
        assert done.stderr.startswith(err), done
        assert err or not done.stderr


def test_squeue_has_every_column_that_portals_read(slurm: Commands) -> None:
    job = slurm.sbatch("-H", "-w", "n2", "-c2", "-n2", "--comment=hi", "--wrap", "true")
    letters = "%c|%d|%f|%G|%H|%I|%J|%n|%O|%o|%p|%Q|%w|%X|%x|%Y|%z"
    shown = slurm.out("squeue", "-h", "-j", str(job), "-o", letters)
    assert shown == (
        f"2|0|(null)|{os.getgid()}|*|*|*|n2|0|(null)|0.00000000000000|0|(null)|N/A||(null)|*:*:*\n"
    )
    every = slurm.out("squeue", "-h", "-j", str(job), "-o", "%all")
    assert every.count("|") == 49
    names = "ReqNodes,NumTasks,Requeue,MinCpus,PriorityLong,Sockets,SCT,MinTmpDisk"
    shown = slurm.out("squeue", "-h", "-j", str(job), "-O", names)
    assert shown.split() == ["n2", "2", "1", "2", "0", "*", "*:*:*", "0"]
    waits = slurm.sbatch("-d", f"afterok:{job}", "--wrap", "true")
    assert int(slurm.out("squeue", "-h", "-j", str(waits), "-o", "%Q")) > 0


def test_scontrol_shows_what_a_job_requested(slurm: Commands, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    job = slurm.sbatch("-H", "--no-requeue", "-x", "n1", "-n3", str(script), "arg")
    shown = slurm.out("scontrol", "-o", "show", "job", str(job))
    for word in (f"Command={script}", "Requeue=0", "ExcNodeList=n1", "NumTasks=3"):
        assert word in shown.split()


def test_sbatch_test_only_names_the_next_id_and_the_partition(slurm: Commands) -> None:
    last = slurm.sbatch("-H", "--wrap", "true")
    slurm.run("scancel", str(last))
    done = slurm.run("sbatch", "--test-only", "-n1", "-c2", "--wrap", "true")
    start = rf"sbatch: Job {last + 1} to start at \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d"
    assert re.fullmatch(
        rf"{start} using 2 processors on nodes \S+ in partition main\n", done.stderr
    )


def test_scancel_names_each_job_with_v(slurm: Commands) -> None:
    job = slurm.sbatch("-H", "--wrap", "true")
    assert slurm.run("scancel", "-v", str(job)).stderr == f"scancel: Terminating job {job}\n"
    assert slurm.state(job) == f"CANCELLED by {os.getuid()}"
    assert slurm.out("sacct", "-X", "-n", "-o", "State", "-j", str(job)) == "CANCELLED+ \n"
    assert slurm.out("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%t") == "CA\n"


def test_scontrol_requeues_a_job_from_inside_under_its_id(slurm: Commands) -> None:
    (slurm.odc.work / "again.sh").write_text(
        "#!/bin/bash\n#SBATCH --open-mode=append -o again.out\n"
        'echo "run ${SLURM_RESTART_COUNT:-0}"\n'
        'if [ -z "$SLURM_RESTART_COUNT" ]; then scontrol requeue $SLURM_JOB_ID; sleep 100; fi\n'
    )
    job = slurm.sbatch("again.sh")
    assert slurm.wait(job, "COMPLETED", "FAILED") == "COMPLETED"
    assert (slurm.odc.work / "again.out").read_text() == "run 0\nrun 1\n"


def test_scontrol_changes_and_releases_a_held_job(slurm: Commands) -> None:
    job = slurm.sbatch("-H", "--wrap", "true")
    slurm.run("scontrol", "update", f"jobid={job}", "timelimit=5", "name=renamed")
    assert slurm.out("squeue", "-h", "-j", str(job), "-o", "%j %l") == "renamed 5:00\n"
    slurm.run("scontrol", "release", str(job))
    assert slurm.wait(job, "COMPLETED") == "COMPLETED"
    assert "slurm" not in slurm.run("scontrol", "wait_job", str(job), code=1).stderr


def test_variables_choose_formats_and_filters(slurm: Commands) -> None:
    job = slurm.sbatch("-H", "--wrap", "true")
    assert slurm.out("squeue", "-h", "-j", str(job), SQUEUE_FORMAT="%t.%i") == f"PD.{job}\n"
    out = slurm.out("sacct", "-n", "-X", "-P", "-j", str(job), SACCT_FORMAT="jobid,state")
    assert out == f"{job}|PENDING\n"


def test_output_in_slurms_formats(slurm: Commands) -> None:
    slurm.odc.rows("select setval('odc.job_id_seq', 4000)")  # so that the ids are always the same
    held = slurm.sbatch("-H", "-J", "a-long-job-name", "--comment", "for tests", "--wrap", "true")
    array = slurm.sbatch(
        "-H", "--array=1-9:2%2", "-t", "1-2:03:04", "-J", "sweep", "--wrap", "true"
    )
    ids = f"{held},{array}"
    text = ""
    for argv in (
        ("squeue", "-j", ids),
        ("squeue", "-j", ids, "-l"),
        (
            "squeue",
            "-j",
            ids,
            "-r",
            "-h",
            "-o",
            '"%i","%j","%t","%M","%L","%D","%C","%m","%b","%R"',
        ),
        ("squeue", "-j", ids, "-O", "JobArrayID,StateCompact,Reason:.30,TimeLimit"),
        ("squeue", "-j", ids, "-h", "-o", "%i<><> %t^^^%r|%B|%e|%E|%k|%8u|%.4P|%K"),
        ("sacct", "-j", ids, "-o", "JobID,JobName%-6,State%20,NodeList,Timelimit,ExitCode"),
        ("sacct", "-j", ids, "-p", "-o", "JobIDRaw,State,Start"),
        ("sacct", "-j", ids, "-P", "-n", "-X", "--delimiter=;", "-o", "JobID,State"),
        ("scontrol", "show", "job", str(held)),
        ("sinfo", "-p", "main", "-n", "n[1-3]"),
        ("sinfo", "-N", "-h", "-n", "n[1-3]", "-o", "%N %P %c %m %G %t"),
        ("sinfo", "-h", "-o", "%P"),
        ("scontrol", "show", "config"),
        ("sacct", "--helpformat"),
    ):
        text += f"$ {' '.join(argv)}\n{slurm.out(*argv)}\n"
    user = slurm.out("squeue", "-h", "-j", str(held), "-o", "%u").strip()
    text = re.sub(r"\b\d+(?=\(\w+\))|\((\d+)\)", "", normalised(text))
    text = re.sub(r"AllocNode:Sid=\S+", "AllocNode:Sid=host:0", text)
    for shown, name in ((user.rjust(8), "    USER"), (user.ljust(8), "USER    "), (user, "USER")):
        text = text.replace(shown, name)
    golden("slurm_commands", text.replace(str(slurm.odc.work), "/work"))
    slurm.run("scancel", str(held), str(array))


def test_squeue_all_keeps_ended_jobs(slurm: Commands) -> None:
    job = slurm.sbatch("--wrap", "true")
    slurm.wait(job, "COMPLETED")
    assert (
        slurm.out("squeue", "-h", "-t", "all", "-n", "wrap", "-o", "%A").split().count(str(job))
        == 1
    )
    assert slurm.out("squeue", "-h", "-j", str(job)) == ""


def test_cpu_time_and_memory_are_shown_for_the_script_and_each_step(slurm: Commands) -> None:
    python = f"{sys.executable} -c"
    script = (
        f"{python} 'b\"x\" * (200 * 2**20)'; srun {python} "
        "'import time; [0 for _ in iter(lambda: time.process_time() < 0.5, False)]'"
    )
    job = slurm.sbatch("--wrap", script)
    slurm.wait(job, "COMPLETED")
    fields = "JobID,MaxRSS,TotalCPU,UserCPU,SystemCPU,MaxDiskRead,MaxDiskWrite"
    whole, batch, step = (
        line.split("|") for line in slurm.out("sacct", "-Pnj", str(job), "-o", fields).splitlines()
    )
    assert (whole[0], whole[1], batch[0], step[0]) == (
        str(job), "", f"{job}.batch", f"{job}.0",
    )  # fmt: skip
    kib = [float(row[1][:-1]) * (1024 if row[1][-1] == "M" else 1) for row in (batch, step)]
    assert kib[0] >= 200 * 1024 > kib[1]
    of_all, of_step = (float(row[2].removeprefix("00:")) for row in (whole, step))
    assert of_all >= of_step >= 0.5
    report = slurm.out("seff", str(job))
    assert "not measured" not in report
    assert re.search(r"CPU Efficiency: [0-9.]+% of ", report)
    assert re.search(r"Memory Utilized: 0\.[2-9][0-9] GB\n", report)


def test_json_has_the_members_that_clients_read(slurm: Commands) -> None:
    import json

    job = slurm.sbatch("-H", "--wrap", "true")
    (shown,) = json.loads(slurm.out("squeue", "--json", "-j", str(job)))["jobs"]
    assert (shown["job_id"], shown["job_state"], shown["het_job_id"]["number"]) == (
        job, ["PENDING"], 0,
    )  # fmt: skip
    assert shown["current_working_directory"] == str(slurm.odc.work)
    (row,) = json.loads(slurm.out("sacct", "--json", "-j", str(job)))["jobs"]
    assert row["state"]["current"] == ["PENDING"]


def test_without_a_daemon_every_command_says_so_at_once(slurm: Commands, tmp_path: Path) -> None:
    for name in ("squeue", "sinfo", "sacct", "scancel", "scontrol", "sbatch"):
        begun = time.monotonic()
        done = slurm.run(name, "1", code=1, ODC_SERVER=f"{tmp_path}/none.sock")
        assert "Unable to contact slurm controller" in done.stderr, name
        assert done.stdout == ""
        assert time.monotonic() - begun < 5
