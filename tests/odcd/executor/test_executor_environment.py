"""A job gets the variables that Slurm would set, without those that confuse launchers."""

from __future__ import annotations

import os
import pwd
from datetime import UTC, datetime
from typing import Any

from odcd.executor.environment import job_environment
from odcd.records.dispatch import Dispatch
from tests.support.builders.dispatches import a_dispatch_of, a_member


def _environment(
    rank: int = 0,
    base: dict[str, str] | None = None,
    gpu_ids: list[int] | None = None,
    **changes: Any,
) -> dict[str, str]:
    dispatch: Dispatch = a_dispatch_of(**changes)[0]
    return job_environment(
        dispatch, dispatch.members[rank], base or {}, cluster="odc", master_addr="127.0.0.1",
        gpu_ids=gpu_ids,
    )  # fmt: skip


def test_a_plain_job_has_the_slurm_variables_of_itself() -> None:
    started = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
    env = _environment(
        job_id=42, name="a b", user="al", uid=1000, gid=1001, account="lab", partition="h100",
        qos="high", work_dir="/home/al", started_at=started,
        ends_at=datetime(2026, 11, 21, 9, 0, tzinfo=UTC), members=(a_member(cpus=16),),
    )  # fmt: skip
    assert {name: env[name] for name in env if name.startswith("SLURM")} == {
        "SLURM_JOB_ID": "42", "SLURM_JOBID": "42", "SLURM_JOB_NAME": "a b",
        "SLURM_JOB_NODELIST": "gpu-01", "SLURM_NODELIST": "gpu-01",
        "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1", "SLURM_TASKS_PER_NODE": "1",
        "SLURM_CPUS_ON_NODE": "16", "SLURM_JOB_CPUS_PER_NODE": "16", "SLURM_MEM_PER_NODE": "1024",
        "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_GTIDS": "0",
        "SLURM_JOB_PARTITION": "h100", "SLURM_JOB_ACCOUNT": "lab", "SLURM_JOB_QOS": "high",
        "SLURM_JOB_USER": "al", "SLURM_JOB_UID": "1000", "SLURM_JOB_GID": "1001",
        "SLURM_CLUSTER_NAME": "odc", "SLURM_SUBMIT_DIR": "/home/al", "SLURM_SUBMIT_HOST": "login",
        "SLURM_JOB_START_TIME": str(int(started.timestamp())),
        "SLURM_JOB_END_TIME": str(int(started.timestamp()) + 3600),
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1", "SLURMD_NODENAME": "gpu-01",
    }  # fmt: skip
    assert (env["ODC_JOB_ID"], env["ODC_RANK"], env["ODC_NODE"]) == ("42", "0", "gpu-01")
    assert env["MASTER_PORT"] == "20042"


def test_a_gang_knows_its_ranks_peers_and_master() -> None:
    members = tuple(a_member(rank, gpu_indexes=tuple(range(8)), cpus=96) for rank in range(3))
    first, last = (_environment(rank, members=members) for rank in (0, 2))
    assert last["SLURM_JOB_NODELIST"] == "gpu-[01-03]"
    assert last["SLURM_JOB_CPUS_PER_NODE"] == "96(x3)"
    assert last["SLURM_TASKS_PER_NODE"] == "1(x3)"
    assert (last["SLURM_PROCID"], last["SLURM_NODEID"], last["ODC_RANK"]) == ("2", "2", "2")
    assert last["ODC_PEERS"] == "gpu-01,gpu-02,gpu-03"
    assert last["SLURM_STEP_NUM_TASKS"] == "3"
    for name in ("MASTER_ADDR", "MASTER_PORT", "SLURM_NODELIST"):
        assert first[name] == last[name]


def test_ntasks_is_set_only_if_tasks_were_requested() -> None:
    members = (a_member(0), a_member(1))
    assert not {"SLURM_NTASKS", "SLURM_NPROCS"} & _environment(members=members).keys()
    env = _environment(members=members, options={"ntasks_per_node": 8, "cpus_per_task": 3})
    assert (env["SLURM_NTASKS"], env["SLURM_NPROCS"]) == ("16", "16")
    assert env["SLURM_NTASKS_PER_NODE"] == "8"
    assert env["SLURM_TASKS_PER_NODE"] == "8(x2)"
    assert env["SLURM_CPUS_PER_TASK"] == env["SRUN_CPUS_PER_TASK"] == "3"
    assert _environment(members=members, options={"ntasks": 5})["SLURM_TASKS_PER_NODE"] == "3,2"


def test_no_batch_job_looks_like_an_srun_task() -> None:
    # MPI libraries that see a step id look for srun's process manager and fail.
    for members in ((a_member(),), (a_member(0), a_member(1))):
        env = _environment(members=members)
        assert not {"SLURM_STEP_ID", "SLURM_STEPID"} & env.keys()


def test_gpus_on_node_is_a_number_without_type() -> None:
    env = _environment(
        members=(a_member(gpu_indexes=(1, 3, 6)),),
        options={"gpus_spec": {"gpus_per_node": "h100:3", "gpus": "h100:3"}},
    )
    assert env["SLURM_GPUS_ON_NODE"] == "3"
    assert env["SLURM_GPUS_PER_NODE"] == env["SLURM_GPUS"] == "h100:3"
    assert env["SLURM_JOB_GPUS"] == env["CUDA_VISIBLE_DEVICES"] == "1,3,6"
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_cuda_uses_device_numbers_if_they_differ_from_indexes() -> None:
    env = _environment(members=(a_member(gpu_indexes=(0, 1)),), gpu_ids=[2, 3])
    assert env["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert env["SLURM_JOB_GPUS"] == "0,1"


def test_a_job_without_gpus_sees_none_even_if_its_submitter_did() -> None:
    env = _environment(base={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert env["CUDA_VISIBLE_DEVICES"] == ""
    assert "SLURM_GPUS_ON_NODE" not in env


def test_memory_variables_follow_the_requested_form() -> None:
    env = _environment(options={"mem_per_cpu_mib": 2048})
    assert env["SLURM_MEM_PER_CPU"] == "2048"
    assert "SLURM_MEM_PER_NODE" not in env


def test_steps_learn_that_output_files_are_appended_to() -> None:
    # submitit's jobs are requeued, and their steps would empty the files of the run before.
    assert _environment(open_mode="append")["SLURM_OPEN_MODE"] == "a"
    assert "SLURM_OPEN_MODE" not in _environment()


def test_an_array_element_knows_its_array() -> None:
    env = _environment(
        job_id=50, array_job_id=40, array_task_id=7, array_min=1, array_max=9, array_count=5,
        array_step=2,
    )  # fmt: skip
    assert {n: v for n, v in env.items() if n.startswith("SLURM_ARRAY")} == {
        "SLURM_ARRAY_JOB_ID": "40", "SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "1",
        "SLURM_ARRAY_TASK_MAX": "9", "SLURM_ARRAY_TASK_COUNT": "5", "SLURM_ARRAY_TASK_STEP": "2",
    }  # fmt: skip
    assert env["ODC_ARRAY_TASK_ID"] == "7"


def test_a_restart_is_counted_from_the_first_requeue_on() -> None:
    assert "SLURM_RESTART_COUNT" not in _environment()
    assert _environment(restarts=2)["SLURM_RESTART_COUNT"] == "2"


def test_without_an_environment_a_job_still_has_a_login() -> None:
    me = pwd.getpwuid(os.geteuid())
    env = _environment()
    assert (env["HOME"], env["SHELL"]) == (me.pw_dir, me.pw_shell)
    assert env["USER"] == env["LOGNAME"] == me.pw_name
    assert "/usr/bin" in env["PATH"].split(":")
    assert env["TMPDIR"] == "/tmp"


def test_submitted_variables_are_not_changed() -> None:
    base = {"HOME": "/data/al", "PATH": "/opt/conda/bin", "TMPDIR": "/scratch", "LANG": "C"}
    env = _environment(base=base | {"PWD": "/data/al/run"}, work_dir="/data/al/other")
    assert {name: env[name] for name in base} == base
    assert env["SLURM_SUBMIT_DIR"] == "/data/al/run"
    assert env["PWD"] == "/data/al/other"


def test_booking_and_licences_are_in_the_environment() -> None:
    env = _environment(booking="course", licences={"matlab": 2, "ansys": 1})
    assert env["SLURM_JOB_RESERVATION"] == "course"
    assert env["SLURM_JOB_LICENSES"] == "ansys:1,matlab:2"
    plain = _environment()
    assert not {"SLURM_JOB_RESERVATION", "SLURM_JOB_LICENSES"} & plain.keys()


def test_a_heterogeneous_job_has_variables_for_each_component() -> None:
    env = _environment(
        job_id=42, members=tuple(a_member(rank, cpus=rank + 2) for rank in range(3)),
        component_nodes=(1, 2), options={
            "launch": "first",
            "components": [{"name": "one", "ntasks": 1},
                           {"ntasks": 4, "cpus_per_task": 2, "gpus_spec": {"gpus": "8"}}],
        },
    )  # fmt: skip
    assert (env["SLURM_HET_SIZE"], env["SLURM_JOB_ID"], env["SLURM_JOB_NAME"]) == ("2", "42", "one")
    assert (env["SLURM_JOB_NODELIST"], env["SLURM_NTASKS"]) == ("gpu-01", "1")
    assert "SLURM_CPUS_PER_TASK" not in env
    assert (env["ODC_NODELIST"], env["ODC_NODE_COUNT"]) == ("gpu-[01-03]", "3")
    groups = {name: value for name, value in env.items() if name.endswith("_HET_GROUP_1")}
    assert {
        "SLURM_JOB_ID_HET_GROUP_1": "43", "SLURM_JOB_NAME_HET_GROUP_1": "train",
        "SLURM_JOB_NODELIST_HET_GROUP_1": "gpu-[02-03]", "SLURM_NTASKS_HET_GROUP_1": "4",
        "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1": "3,4", "SLURM_CPUS_PER_TASK_HET_GROUP_1": "2",
        "SLURM_GPUS_HET_GROUP_1": "8", "SLURM_TASKS_PER_NODE_HET_GROUP_1": "2(x2)",
    }.items() <= groups.items()  # fmt: skip
    assert env["SLURM_JOB_NODELIST_HET_GROUP_0"] == "gpu-01"
    assert "SLURM_HET_SIZE" not in _environment()
