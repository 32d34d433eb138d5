"""odcctl show: all there is to tell of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl import jobs, render
from odcctl.client import Client, quote
from odcctl.exits import DONE
from odcctl.hostlist import fold
from odcctl.moments import AS_OF, past
from odcctl.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    selectors = jobs.check_selectors(arguments.words)
    client = Client.of(arguments)
    moment = past(arguments, "as-of")
    if arguments.flag("script"):
        if moment:
            arguments.command.wrong("--script and --as-of exclude each other: scripts never change")
        for selector in selectors:
            render.put(client.get(f"/v1/jobs/{quote(selector)}/script").text)
        return DONE
    replies = [
        client.get(f"/v1/jobs/{quote(selector)}", {"as_of": moment}) for selector in selectors
    ]
    found = [job for reply in replies for job in reply.json()["jobs"]]
    if arguments.form == "json":
        one = len(replies) == 1
        render.put(replies[0].text.rstrip("\n") + "\n") if one else render.put_json({"jobs": found})
    elif arguments.form == "quiet":
        render.put("".join(f"{jobs.job_id(job)}\n" for job in found))
    else:
        now_s = render.moment(moment).timestamp() if moment else replies[0].now_s
        render.put("\n".join(describe(job, now_s) for job in found))
    return DONE


def describe(job: Mapping[str, Any], now_s: float) -> str:
    """One job as a block of keys and values; what does not apply is left out."""
    pairs = [
        ("name", job["name"]),
        ("state", _state(job)),
        ("why", _why(job, now_s)),
        ("end", render.local_moments(job.get("end_detail") or "")),
        ("preempted", _preemption(job, now_s)),
        ("nodes", fold(job.get("node_names") or ())),
        ("exit code", jobs.exit_code(job) if job["state"] in jobs.ENDED else ""),
        ("user", f"{job['user']} (uid {job['uid']})"),
        ("account", job.get("account")),
        ("partition", job.get("partition")),
        ("qos", job.get("qos")),
        ("asks for", _asks(job)),
        ("in", _wish(job)),
        ("time limit", render.limit(job.get("time_limit_s"))),
        ("submitted", render.when(job.get("submitted_at"))),
        ("eligible", render.when(job.get("eligible_at"))),
        ("begins after", render.when(job.get("begin_at"))),
        ("planned start", render.when(job.get("planned_start_at"))),
        ("expected", _expected(job, now_s)),
        ("started", render.when(job.get("started_at"))),
        ("checkpoint", render.when(job.get("checkpoint_at"))),
        ("ended", render.when(job.get("ended_at"))),
        ("elapsed", _elapsed(job, now_s)),
        ("attempt", _attempt(job)),
        ("array task", _task(job)),
        ("tasks at once", job.get("array_throttle")),
        ("depends on", job.get("dependency")),
        ("booking", job.get("booking")),
        ("licences", _licences(job)),
        ("nice", job.get("nice")),
        ("work dir", job.get("work_dir")),
        ("stdout", job.get("stdout")),
        ("stderr", job.get("stderr")),
        ("comment", job.get("comment")),
    ]
    kept = [(key, _clean(value)) for key, value in pairs if value]
    return render.block(f"job {jobs.job_id(job)}", kept)


def _preemption(job: Mapping[str, Any], now_s: float) -> str:
    told = job.get("preemption")
    if not told or told["text"] == job.get("end_detail"):
        return ""
    what = str(told["text"]).removeprefix("preempted ")
    then = "back to the queue" if told["mode"] == "requeue" else "for good"
    at = jobs.local_times(told["at"], now_s)
    rule = f"QOS {told['qos']} preempts {told['victim_qos']}: {then}"
    return f"{what}\nattempt {told['attempt']}, {at}; {rule}"


def _clean(value: object) -> str:
    return "\n".join(render.clean(line) for line in str(value).split("\n"))


def _state(job: Mapping[str, Any]) -> str:
    reason = job.get("reason")
    return f"{job['state']} ({reason})" if reason and reason != "None" else job["state"]


def _why(job: Mapping[str, Any], now_s: float) -> str:
    return "\n".join(jobs.cause_text(cause, now_s) for cause in job.get("why") or ())


def _expected(job: Mapping[str, Any], now_s: float) -> str:
    start, between = jobs.expected_start(job, now_s)
    return f"{start}; in 8 of 10 such cases from {between}" if between else ""


def _asks(job: Mapping[str, Any]) -> str:
    nodes, gpus = jobs.nodes(job, " to "), job.get("gpus_per_node") or 0
    noun = "GPU" if gpus == 1 else "GPUs"
    kind = job.get("gpu_type")
    each = [f"{gpus} {kind} {noun}" if kind else f"{gpus} {noun} of any type"] if gpus else []
    cpus = job.get("cpus_per_node")
    if cpus:
        each.append(f"{cpus} CPUs" if cpus > 1 else "1 CPU")
    if job.get("mem_per_node_mib") is not None:
        mib = job["mem_per_node_mib"]
        each.append(render.memory(mib) if mib else "all memory")
    return ", ".join(each) if nodes == "1" else f"{nodes} nodes, on each: {', '.join(each)}"


def _wish(job: Mapping[str, Any]) -> str:
    most, wait_s = job.get("switches"), job.get("switches_wait_s")
    if not most or job["state"] != "PENDING":
        return ""
    until = "for as long as it takes" if wait_s is None else f"for up to {render.duration(wait_s)}"
    return f"at most {most} topology {'block' if most == 1 else 'blocks'}; waits for it {until}"


def _licences(job: Mapping[str, Any]) -> str:
    held: Mapping[str, int] = job.get("licences") or {}
    return ", ".join(f"{count} {name}" for name, count in sorted(held.items()))


def _elapsed(job: Mapping[str, Any], now_s: float) -> str:
    seconds = render.seconds_between(job.get("started_at"), job.get("ended_at") or now_s)
    return "" if seconds is None else render.duration(seconds)


def _attempt(job: Mapping[str, Any]) -> str:
    restarts = job.get("restarts") or 0
    if not restarts:
        return ""
    return f"{job['attempt']} (restarted {restarts} {'times' if restarts > 1 else 'time'})"


def _task(job: Mapping[str, Any]) -> str:
    task = job.get("array_task_id")
    return (
        "" if task is None else f"{task} of array {job['array_job_id']}; its own id is {job['id']}"
    )


COMMAND = Command(
    name="show",
    summary="Show all there is to tell of a job",
    usage="show ID... [OPTIONS]",
    words=(1, None),
    takes_jobs=True,
    notes=(
        "Ids are 7, 7_3, 7_[1-4]; 7 of an array shows every task that started, and the waiting "
        "ones."
    ),
    options=(Option("script", None, None, "print the script as it was submitted"), AS_OF),
    example="odcctl show 4130\nodcctl show 7_3 --script",
    run=run,
)
