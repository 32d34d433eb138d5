"""The command lines of programs that need more than Python, word for word: Nextflow, Toil, AiiDA,
JupyterHub's batchspawner, Open OnDemand. The patterns are what these programs can parse."""

from __future__ import annotations

import getpass
import re
import shlex
from dataclasses import dataclass

import pytest

from tests.support.harness.slurm_commands import Commands

pytestmark = pytest.mark.long
USER = getpass.getuser()
NUMBER = r"\d+"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"


@dataclass(frozen=True)
class Jobs:
    """Jobs in the states that programs meet."""

    running: int
    held: int
    failed: int
    partition: str


@pytest.fixture(scope="module")
def jobs(commands: Commands) -> Jobs:
    failed = commands.sbatch("-J", "failed", "-t5", "--wrap", "exit 3")
    running = commands.sbatch("-J", "running", "-t5", "--mem=100M", "--wrap", "sleep 600")
    held = commands.sbatch("-J", "held", "-t5", "-H", "--wrap", "true")
    commands.wait(failed, "FAILED")
    commands.wait(running, "RUNNING")
    partition = commands.out("sinfo", "-h", "-o", "%P").split()[0].rstrip("*")
    return Jobs(running=running, held=held, failed=failed, partition=partition)


@dataclass(frozen=True)
class Line:
    """A command line, and the pattern that each line of its output matches."""

    program: str
    command: str
    each: str
    lines: int | None = None
    header: str | None = None


PORTAL = [f"%{letter}" for letter in "aABcCdDeEfFgGhHiIjJkKlLmMnNoOqPQrStTuUvVwWxXyYzZb"]
"""The columns that Open OnDemand's job list reads."""
LINES = (
    Line("Nextflow", "squeue --noheader -o '%i %t' -t all -p {partition} -u {user}",
         r"[\d_\[\]%,-]+ (PD|R|CA|CF|CG|CD|F|TO|NF|S|ST|PR|BF)"),
    Line("Nextflow", "squeue --noheader -o '%i %t' -t all -u {user}",
         r"[\d_\[\]%,-]+ (PD|R|CA|CF|CG|CD|F|TO|NF|S|ST|PR|BF)"),
    Line("Toil", "squeue -h --format '%i %t %M'", r"[\d_\[\]%,-]+ (PD|R|CG) [\d:-]+"),
    Line("Toil", "scontrol show job {running}", r".*"),
    Line("Toil", "sacct -n -j {failed},{running} --format JobIDRaw,State,ExitCode -P "
         "-S 1970-01-01 -E now", r"\d+(\.\w+)?\|(FAILED|RUNNING)\|\d+:\d+"),
    Line("Toil", "sinfo -a -o '%P %G %l %p %c %m'",
         r"\S+ \S+ (infinite|[\d:-]+) \d+ \d+\+? \d+\+?",
         header="PARTITION GRES TIMELIMIT PRIO_TIER CPUS MEMORY"),
    Line("AiiDA", "SLURM_TIME_FORMAT='standard' squeue --noheader -o "
         "'%i^^^%t^^^%r^^^%B^^^%u^^^%D^^^%C^^^%R^^^%P^^^%l^^^%M^^^%S^^^%j^^^%V' "
         "--jobs={running},{running}",
         rf"\d+\^\^\^R\^\^\^None\^\^\^\S+\^\^\^\S+\^\^\^1\^\^\^1\^\^\^\S+\^\^\^\S+\^\^\^5:00\^\^\^"
         rf"[\d:]+\^\^\^{TIME}\^\^\^running\^\^\^{TIME}", lines=1),
    Line("AiiDA", "SLURM_TIME_FORMAT='standard' squeue --noheader -o '%i^^^%t^^^%r^^^%S' "
         "--jobs={held},{held}", r"\d+\^\^\^PD\^\^\^JobHeldUser\^\^\^N/A", lines=1),
    Line("AiiDA", "sacct --format=$(sacct --helpformat | tr -s '\\n' ' ' | tr ' ' ',') --parsable "
         "--jobs={failed}", r".*\|", lines=3),
    Line("batchspawner", "squeue -h -j {running} -o '%T %B'", r"(RUNNING|COMPLETING) \S+", lines=1),
    Line("batchspawner", "squeue -h -j {held} -o '%T %B'", r"(PENDING|CONFIGURING) .*", lines=1),
    Line("OnDemand", f"squeue --all --states=all --noconvert -h -o '{'@'.join(PORTAL)}'",
         rf"[^@]*(@[^@]*){{{len(PORTAL) - 1}}}"),
    Line("OnDemand", "sinfo -aho %F/%C", r"\d+/\d+/\d+/\d+/\d+/\d+/\d+/\d+"),
    Line("OnDemand", "sinfo -ahNO nodehost:100,gres:512,gresused:512,statelong",
         r"\S+ +\S+ +\S+ +\w+ *"),
    Line("OnDemand", "scontrol show part -o", r"PartitionName=\S+ .*"),
    Line("slurm-buildkite", "squeue --name=running --noheader --format=%k,%A", r".*,\d+", lines=1),
    Line("exporters", "squeue -a -r -h -o '%A,%T,%r' --states=all", r"\d+,[A-Z_]+,\w+"),
    Line("exporters", "squeue -a -r -h -o '%A|%a|%T|%C'", r"\d+\|\S*\|[A-Z_]+\|\d+"),
    Line("exporters", "sinfo -h -o %C", r"\d+/\d+/\d+/\d+", lines=1),
    Line("exporters", "sinfo -h -o %D,%T", r"\d+,\w+"),
    Line("exporters", "sinfo -h -o '%n %G'", r"\S+ \S+"),
    Line("exporters", "sinfo -h -N -O NodeList,AllocMem,Memory,CPUsState,StateLong",
         r"\S+ +\d+ +\d+ +\d+/\d+/\d+/\d+ +\w+ *"),
    Line("exporters", "sacct -a -X --format=AllocTRES --state=RUNNING --noheader --parsable2",
         r"cpu=\d+.*"),
    Line("Toil", "scontrol show job", r".*"),
)  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.program}: {line.command[:40]}")
def test_programs_can_parse_the_output(slurm: Commands, jobs: Jobs, line: Line) -> None:
    command = line.command.format(
        running=jobs.running, held=jobs.held, failed=jobs.failed, partition=jobs.partition,
        user=USER,
    )  # fmt: skip
    out = slurm.out("sh", "-c", command)
    rows = out.splitlines()
    if line.header is not None:
        assert rows.pop(0) == line.header
    assert rows if line.lines is None else len(rows) == line.lines, out
    assert [row for row in rows if re.fullmatch(line.each, row) is None] == []


def test_toil_finds_the_exit_code_in_the_record_of_a_job(slurm: Commands, jobs: Jobs) -> None:
    record = slurm.out("scontrol", "show", "job", str(jobs.failed))
    assert record.startswith(f"JobId={jobs.failed} ")
    facts = dict(word.split("=", 1) for word in record.split() if "=" in word)
    assert (facts["JobState"], facts["ExitCode"]) == ("FAILED", "3:0")


# -- submissions --------------------------------------------------------------------------------


def test_nextflow_submits_follows_and_kills(slurm: Commands, jobs: Jobs) -> None:
    folder = slurm.odc.work / "nextflow"
    folder.mkdir()
    (folder / ".command.run").write_text(
        f"#!/bin/bash\n#SBATCH -J nf-hello_(1)\n#SBATCH -o {folder}/.command.log\n"
        f"#SBATCH --no-requeue\n#SBATCH --signal B:USR2@30\n#SBATCH -c 1\n#SBATCH -t 00:05:00\n"
        f"#SBATCH --mem 100M\n#SBATCH -p {jobs.partition}\n"
        f"cd {folder}\necho hello\nprintf 0 > .exitcode\n"
    )
    found = re.search(
        r"Submitted batch job (\d+)", slurm.out("sbatch", str(folder / ".command.run"))
    )
    assert found is not None
    slurm.wait(found[1], "COMPLETED")
    assert (folder / ".exitcode").read_text() == "0"
    assert (folder / ".command.log").read_text() == "hello\n"
    killed = [str(slurm.sbatch("--wrap", "sleep 600")) for _ in range(2)]
    slurm.run("scancel", *killed)
    for job in killed:
        slurm.wait(job, "CANCELLED")


def test_toil_submits_a_wrapped_command(slurm: Commands) -> None:
    done = slurm.out(
        "sbatch", "-J", "toil_job_1_part", "--export=ALL,TOIL=yes", "--mem=100",
        "--cpus-per-task=1", "--time=0:300", "--output=toil-%j.out", "--error=toil-%j.err",
        "--wrap=exec sh -c 'echo $TOIL; exit 5'",
    )  # fmt: skip
    job = int(done.strip().split()[-1])
    slurm.wait(job, "FAILED")
    assert (slurm.odc.work / f"toil-{job}.out").read_text() == "yes\n"
    line = slurm.out("sacct", "-n", "-j", str(job), "--format", "JobIDRaw,State,ExitCode", "-P",
                     "-S", "1970-01-01", "-E", "now").splitlines()[0]  # fmt: skip
    assert line == f"{job}|FAILED|5:0"


def test_aiida_submits_a_script_with_its_header(slurm: Commands) -> None:
    (slurm.odc.work / "_aiidasubmit.sh").write_text(
        '#!/bin/bash\n#SBATCH --no-requeue\n#SBATCH --job-name="aiida-7"\n'
        "#SBATCH --get-user-env\n#SBATCH --output=_scheduler-stdout.txt\n"
        "#SBATCH --error=_scheduler-stderr.txt\n#SBATCH --nice=100\n#SBATCH --nodes=1\n"
        "#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=1\n#SBATCH --time=00:05:00\n"
        "#SBATCH --mem=100\n\nexport OMP_NUM_THREADS=1\n\n'echo' 'aiida'  > 'aiida.out'\n"
    )
    done = slurm.out("sh", "-c", f"cd {shlex.quote(str(slurm.odc.work))} && "
                     "sbatch '_aiidasubmit.sh'")  # fmt: skip
    found = re.fullmatch(r"Submitted batch job (\d+)\n", done)
    assert found is not None
    slurm.wait(found[1], "COMPLETED")
    assert (slurm.odc.work / "aiida.out").read_text() == "aiida\n"


def test_batchspawner_submits_a_script_on_standard_input(slurm: Commands) -> None:
    script = (
        "#!/bin/bash\n#SBATCH --output=spawner.log\n#SBATCH --job-name=spawner-jupyterhub\n"
        f"#SBATCH --chdir={slurm.odc.work}\n#SBATCH --export=PATH,HUB\n"
        "#SBATCH --get-user-env=L\n#SBATCH --time=5\n#SBATCH --mem=100M\n\n"
        "set -euo pipefail\ntrap 'echo SIGTERM received' TERM\necho hub $HUB\nsleep 600 & wait\n"
    )
    job = slurm.run("sbatch", "--parsable", stdin=script, HUB="here").stdout.strip()
    slurm.wait(job, "RUNNING")
    log = slurm.odc.work / "spawner.log"
    slurm.until(lambda: log.exists() and log.read_text() == "hub here\n")
    slurm.run("scancel", job)
    slurm.wait(job, "CANCELLED")
    slurm.until(lambda: "SIGTERM received" in log.read_text())
