"""Client and AsyncClient with a real daemon and real jobs."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from pathlib import Path

import pytest

from odc import (
    AsyncClient,
    Client,
    JobFailed,
    JobSpec,
    NotFound,
    Refused,
    Unreachable,
    WrongSettings,
)
from tests.support.harness.daemon import Odc


def test_a_command_runs_and_its_output_is_read(client: Client) -> None:
    job = client.submit(["echo", "a b", "*"], job_name="say", time=timedelta(minutes=5))
    ended = job.wait(60, check=True)
    assert (ended.state, ended.exit_code, ended.is_ok) == ("COMPLETED", 0, True)
    assert job.logs() == "a b *\n"
    assert b"".join(job.follow_logs()) == b"a b *\n"
    status = job.status()
    assert (status.name, status.time_limit_s, status.is_ended) == ("say", 300, True)
    assert status.ended_at is not None
    assert status.ended_at.utcoffset() == timedelta()
    [listed] = client.list_jobs(job=job.id, ended=True)
    assert listed.stdout == status.stdout
    assert [event.kind for event in job.events(follow=False)][-1] == "ended"


def test_a_script_is_a_file_or_a_text_and_its_directives_count(client: Client, odc: Odc) -> None:
    text = '#!/bin/sh\n#SBATCH --job-name=named\necho "$1" "$KEPT"\n'
    (odc.work / "job.sh").write_text(text)
    for command in (Path("job.sh"), "job.sh", text):
        job = client.submit(command, "one", environment={"KEPT": "yes", "PATH": "/usr/bin:/bin"})
        assert job.wait(60).is_ok
        assert (job.logs(), job.status().name) == ("one yes\n", "named")
        assert job.client.script(job.id) == text


def test_a_typed_request_is_a_job(client: Client, odc: Odc) -> None:
    spec = JobSpec(script="#!/bin/sh\nexit 7\n", work_dir=str(odc.work), name="typed")
    first, second = client.submit_specs([spec, spec])
    with pytest.raises(JobFailed, match="exit code 7") as failed:
        first.wait(60, check=True)
    assert (failed.value.job_id, failed.value.exit_code) == (first.id, 7)
    assert second.wait(60).exit_code == 7


def test_submits_with_the_same_key_make_one_job(client: Client, odc: Odc) -> None:
    one = client.submit(["true"], hold=True, key="k1", environment={})
    same = client.submit(["true"], hold=True, key="k1", environment={})
    other = client.submit(["true"], hold=True, environment={})
    assert one.id == same.id != other.id
    for job in (one, other):
        job.cancel()


def test_an_array_is_waited_for_as_a_whole(client: Client) -> None:
    job = client.submit(["sh", "-c", "exit $SLURM_ARRAY_TASK_ID"], array=[0, 2])
    ended = job.wait(60)
    assert (ended.array_task_id, ended.exit_code) == (2, 2)
    assert sorted(one.array_task_id or 0 for one in client.wait(job.id)) == [0, 2]
    assert {row.array_task_id for row in job.tasks()} == {0, 2}
    assert client.logs(f"{job.id}_0") == ""


def test_the_output_of_an_array_is_that_of_all_tasks(client: Client) -> None:
    job = client.submit(["sh", "-c", "echo $SLURM_ARRAY_TASK_ID"], array="1-3%1")
    lines = [f"{job.id}_{task}: {task}\n" for task in (1, 2, 3)]
    # Lines of different tasks may arrive in another order than they were written.
    followed = b"".join(job.follow_logs()).decode().splitlines(keepends=True)
    assert sorted(followed) == lines
    assert job.logs() == "".join(lines)

    async def follow() -> list[bytes]:
        return [piece async for piece in AsyncClient().follow_logs(job.id)]

    followed = b"".join(asyncio.run(follow())).decode().splitlines(keepends=True)
    assert sorted(followed) == lines


def test_the_events_of_a_job_end_with_it(client: Client) -> None:
    job = client.submit(["sh", "-c", "exit 0"], array="0-1")
    events = list(job.events())
    assert [event.kind for event in events].count("ended") == 2
    later = client.follow_events(job.id, after=events[-1].id)
    assert "ended" not in [event.kind for event in later]

    async def follow() -> list[str]:
        held = await AsyncClient().submit(["true"], hold=True)
        asyncio.get_running_loop().call_soon(lambda: client.cancel(held.id))
        return [event.kind async for event in held.events()]

    assert asyncio.run(follow())[-1] == "ended"


def test_a_heterogeneous_job_has_components(client: Client) -> None:
    script = "#!/bin/sh\n#SBATCH -n1 -c2\n#SBATCH hetjob\n#SBATCH -N1 --gpus-per-node=h100:4\n"
    job = client.submit(script, hold=True)
    first, second = job.status().components or []
    assert (first.node_count, first.gpus_per_node, first.cpus_per_node) == (1, 0, 2)
    assert (second.node_count, second.gpus_per_node, second.gpu_type) == (1, 4, "h100")
    job.cancel()
    assert client.submit(["true"]).status().components is None


def test_ctrl_c_while_waiting_says_that_the_job_goes_on(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = client.submit(["true"], hold=True)
    with monkeypatch.context() as patched:
        patched.setattr(client.transport, "send", _interrupted)
        with pytest.raises(KeyboardInterrupt) as stopped:
            job.wait()
    note = f"odc: job {job.id} goes on; `odcctl cancel {job.id}` ends it"
    assert stopped.value.__notes__ == [note]
    assert job.status().state == "PENDING"
    job.cancel()


def _interrupted(request: object) -> None:
    raise KeyboardInterrupt


def test_a_waiting_job_explains_itself_and_changes(client: Client) -> None:
    job = client.submit(["true"], hold=True)
    why = job.why()
    assert (why.state, why.reason) == ("PENDING", "JobHeldUser")
    assert str(why) == why.why[0].text
    with pytest.raises(TimeoutError, match=f"job {job.id} has not ended"):
        job.wait(0)
    assert [one.outcome for one in client.release(job.id)] == ["released"]
    assert job.wait(60).is_ok
    job.cancel()  # An ended job stays as it is.
    assert job.status().state == "COMPLETED"


def test_a_running_job_gets_signals_and_is_cancelled(client: Client, odc: Odc) -> None:
    # As in Slurm, the signal goes to the programs that the script started.
    program = "trap 'echo caught' USR1; echo up; while :; do sleep 0.05; done"
    job = client.submit(f'#!/bin/sh\nsh -c "{program}"\ntrue\n')
    output = job.follow_logs()
    assert next(output) == b"up\n"
    job.signal("USR1")
    got = b""
    while b"caught" not in got:
        got += next(output)
    job.cancel()
    assert job.wait(60).state == "CANCELLED"


def test_a_job_gets_its_name_by_either_word(client: Client) -> None:
    assert client.submit(["true"], name="a").status().name == "a"
    assert client.submit(["true"], job_name="b").status().name == "b"


def test_a_preview_submits_nothing(client: Client) -> None:
    preview = client.preview(["true"], gpus="h100:8")
    assert preview.node_names == ["gpu-01"]
    assert preview.start_at is not None
    assert client.list_nodes()[0].gpus == 8


def test_a_refusal_carries_the_problem(client: Client) -> None:
    with pytest.raises(Refused, match=r"no node could ever run it.*\(OD008\)") as refused:
        client.submit(["true"], gpus="h100:16", nodes=1)
    assert (refused.value.code, refused.value.status) == ("OD008", 422)
    assert refused.value.problem["title"] == "NeverFits"
    assert refused.value.hint
    with pytest.raises(NotFound) as unknown:
        client.job(987654).status()
    assert unknown.value.code == "OD006"
    with pytest.raises(Refused, match="--nonsense"):
        client.submit(["true"], nonsense="x")


def test_a_daemon_that_never_answered_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="no daemon answers"):
        Client(str(tmp_path / "none.sock")).job(1).status()
    with pytest.raises(WrongSettings, match="not a server address"):
        Client("http://nowhere:")


def test_the_asynchronous_client_does_the_same(client: Client) -> None:
    async def work() -> None:
        mine = AsyncClient()
        jobs = await asyncio.gather(*(mine.submit(["echo", str(n)]) for n in range(8)))
        ended = await asyncio.gather(*(job.wait(60, check=True) for job in jobs))
        assert [one.state for one in ended] == ["COMPLETED"] * 8
        assert [await job.logs() for job in jobs] == [f"{n}\n" for n in range(8)]
        listed = {one.id async for one in mine.list_jobs(job=[job.id for job in jobs], ended=True)}
        assert listed == {job.id for job in jobs}
        held = await mine.submit(["true"], hold=True)
        with pytest.raises(TimeoutError):
            await held.wait(0)
        waiting = asyncio.create_task(held.wait())
        await held.cancel()
        assert (await waiting).state == "CANCELLED"
        kinds = [event.kind async for event in held.events(follow=False)]
        assert kinds[-1] == "ended"
        with pytest.raises(NotFound):
            await mine.job(987654).status()

    asyncio.run(work())


def test_follows_the_cluster(client: Client) -> None:
    first = next(iter(client.follow_events(after=0, follow=False)))
    assert first.id >= 1
    job = client.submit(["true"])
    job.wait(60)
    mine = (e for e in client.follow_events(after=first.id) if e.job_id == job.id)
    kinds = [event.kind for event in itertools.islice(mine, 3)]
    assert kinds == ["submitted", "started", "ended"]
