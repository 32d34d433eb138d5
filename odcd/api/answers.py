"""What answers look like: the schemas of /openapi.json. PostgreSQL writes the JSON; tests hold the
two together."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

LiveState = Literal["PENDING", "CONFIGURING", "RUNNING", "COMPLETING"]
EndState = Literal[
    "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "DEADLINE", "BOOT_FAIL",
]  # fmt: skip
LIVE_STATES: tuple[str, ...] = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
END_STATES: tuple[str, ...] = (
    "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "DEADLINE", "BOOT_FAIL",
)  # fmt: skip


class _Answer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class Cause(_Answer):
    """One thing that keeps a job from starting. Only what applies is there beside text."""

    cause: Literal[
        "running_job",
        "planned_job",
        "limit",
        "dependency",
        "node",
        "hold",
        "begin",
        "booking",
        "disk",
        "preempted",
        "start",
    ]
    text: str
    job_id: int | None = None
    limit: str | None = None
    booking_id: int | None = None
    node: str | None = None
    gpus: int | None = None
    until: str | None = None


class Eta(_Answer):
    """When a pending job should start: before p10, p50 and p90 in 10, 50 and 90 % of such cases.
    exact: it is protected, and starts at planned_start_at at the latest. p10 and p90 are null where
    nothing but the planned start is known yet."""

    p10: str | None
    p50: str | None
    p90: str | None
    exact: bool


class Preemption(_Answer):
    """A job that was ended for another one, or is being ended: the preemptor and its QOS, the rule
    (its QOS preempts victim_qos; the mode), and the cost: what was lost since the start or the last
    checkpoint, in seconds of GPUs, or of CPUs where the job has none."""

    text: str
    attempt: int
    by: int
    qos: str
    victim_qos: str
    mode: Literal["requeue", "cancel"]
    at: str
    ran_s: int
    grace_s: int
    checkpoint_at: str | None = None
    lost_gpu_s: int | None = None
    lost_cpu_s: int | None = None


class GpuUseNow(_Answer):
    """When it was looked last; util_ratio: the mean of its GPUs, from 0 to 1; mem_used_mib: of all
    of them together. idle_gpus: those that have rested for as long as GET /v1/idle lists them,
    idle_since: the longest of them."""

    at: str
    util_ratio: float | None
    mem_used_mib: int | None
    idle_gpus: int
    idle_since: str | None


class GpuUse(_Answer):
    """What the GPUs of a job did, over all its attempts that ran, in seconds of one GPU: held; seen
    of that; busy, of what was seen, weighed by use; busy_ratio is busy_gpu_s over seen_gpu_s.
    mem_peak_mib: of its fullest GPU. owed: attempts that ended and are not stored yet. gave_up: why
    some was not seen. now: while it runs."""

    source: Literal["prometheus", "nvml"] | None
    held_gpu_s: int
    seen_gpu_s: int
    busy_gpu_s: int
    busy_ratio: float | None
    mem_peak_mib: int | None
    energy_j: int | None
    owed: int
    gave_up: str | None
    now: GpuUseNow | None


class Job(_Answer):
    """Times are ISO 8601 in UTC, with Z. The tasks of an array that wait are one job with
    array_task_id null and array_tasks like 3-9%2. time_limit_s null: no limit. end_detail: what the
    executor said of the end. stdout, stderr: file patterns as submitted; of a single job that has
    started, the path that its first node writes. stderr null: it goes where stdout goes.
    node_count: while it waits for a number between that and node_count_max, the least. switches: it
    waits for nodes in at most so many topology blocks, for switches_wait_s (null: for ever).
    checkpoint_at: of a running job, the last it told of. preemption: its last, null when none.
    gpu_use: null where it has no GPUs, or nothing is known of their use."""

    id: int
    array_job_id: int | None
    array_task_id: int | None
    array_tasks: str | None
    name: str
    kind: Literal["batch", "reservation"]
    user: str
    uid: int
    account: str | None
    partition: str
    qos: str | None
    state: LiveState | EndState
    reason: str | None
    why: list[Cause]
    priority: int | None
    nice: int
    submitted_at: str
    eligible_at: str | None
    begin_at: str | None
    planned_start_at: str | None
    eta: Eta | None
    started_at: str | None
    checkpoint_at: str | None
    ended_at: str | None
    time_limit_s: int | None
    node_count: int
    node_count_max: int | None
    switches: int | None
    switches_wait_s: int | None
    gpus_per_node: int
    gpus: int
    gpu_type: str | None
    cpus_per_node: int
    mem_per_node_mib: int
    node_names: list[str]
    attempt: int
    restarts: int
    exit_code: int | None
    signal: int | None
    end_detail: str | None
    preemption: Preemption | None
    dependency: str | None
    array_throttle: int | None
    work_dir: str
    stdout: str | None
    stderr: str | None
    comment: str | None
    booking: str | None
    licences: dict[str, int] | None
    gpu_use: GpuUse | None


class JobList(_Answer):
    """next: the cursor of the next page, null on the last. With fields=, jobs have only those."""

    jobs: list[Job]
    next: str | None


class EndedJob(_Answer):
    id: int
    array_task_id: int | None
    state: EndState
    exit_code: int | None
    signal: int | None


class Jobs(_Answer):
    jobs: list[Job]


class Ended(_Answer):
    """The answer to ?wait=: jobs is empty while not all have ended."""

    jobs: list[EndedJob]
    ended: bool


class Explanation(_Answer):
    job_id: int
    state: LiveState | EndState
    reason: str | None
    why: list[Cause]
    planned_start_at: str | None
    eta: Eta | None


class Outcome(msgspec.Struct, kw_only=True):
    """What became of one job; code, message and hint when it was refused. array_tasks: those of a
    waiting array that were cancelled."""

    job_id: int
    array_task_id: int | None
    outcome: str
    array_tasks: str | None = None
    code: str | None = None
    message: str | None = None
    hint: str | None = None


class Outcomes(_Answer):
    jobs: list[Outcome]


class SubmittedJob(_Answer):
    id: int


class SubmittedBatch(_Answer):
    ids: list[int]


class SubmittedArgv(_Answer):
    """wait, parsable, quiet, json, pty: what the command line asked of the client."""

    id: int
    wait: bool
    parsable: bool
    quiet: bool
    json: bool
    pty: bool
    warnings: list[str]


class Delay(_Answer):
    """A job whose planned start another one would move. to: null when it would lose it."""

    job_id: int
    from_: str = msgspec.field(name="from")
    to: str | None


class Refused(_Answer):
    code: str
    message: str
    hint: str


class Victim(_Answer):
    """A running job that would be ended for another one, and what it would lose: since its start or
    its last checkpoint, in seconds of GPUs, or of CPUs where it has none."""

    text: str
    job_id: int
    user: str
    qos: str
    mode: Literal["requeue", "cancel"]
    ran_s: int
    grace_s: int
    lost_gpu_s: int | None = None
    lost_cpu_s: int | None = None


class Preview(_Answer):
    """Where and when a job would start, as far as others let it: start_at null when it would wait
    behind more of them than are planned, behind a limit, or when it is held back by itself; reason
    is the queue's then. promised: a pass would protect the start, which beyond the plan depth it
    does not. victims: whom it would preempt."""

    text: str
    node_count: int | None = None
    gpus_per_node: int | None = None
    gpu_type: str | None = None
    cpus_per_node: int | None = None
    mem_per_node_mib: int | None = None
    time_limit_s: int | None = None
    start_at: str | None = None
    node_names: list[str] = []
    promised: bool = False
    limit: str | None = None
    reason: str | None = None
    delays: list[Delay] = []
    victims: list[Victim] = []
    refused: Refused | None = None


class Planned(_Answer):
    """A pending job with a planned start, null when no end of what it waits for is in sight.
    detail: what it needs. moved_by_pass: the pass that last changed any of this."""

    id: int
    array_job_id: int | None
    array_task_id: int | None
    array_tasks: str | None
    name: str
    user: str
    account: str | None
    partition: str | None
    node_count: int
    node_count_max: int | None
    gpus_per_node: int
    gpu_type: str | None
    time_limit_s: int | None
    planned_start_at: str | None
    node_names: list[str]
    detail: str
    moved_by_pass: int | None
    eta: Eta | None


class Plan(_Answer):
    """Planned starts as pass_id left them, the first one first."""

    at: str
    pass_id: int | None
    jobs: list[Planned]


class GanttBar(_Answer):
    """kind booking: name is the booking's, and nothing of a job is there. gpu_indexes: which GPUs
    of the node, of what runs. likely_end_at: when half of such jobs have ended, null where nothing
    is known of any; ends_at: its time limit, null for none. What is not over does not end before
    now."""

    kind: Literal["running", "planned", "booking"]
    job_id: int | None
    array_job_id: int | None
    array_task_id: int | None
    array_tasks: str | None
    name: str
    user: str | None
    gpus: int
    gpu_indexes: list[int]
    starts_at: str
    likely_end_at: str | None
    ends_at: str | None


class GanttNode(_Answer):
    """bars: running jobs, then planned ones, then bookings, each by start."""

    name: str
    gpu_type: str
    gpus: int
    state: Literal["UP", "DRAIN", "DOWN"]
    reason: str | None
    bars: list[GanttBar]


class Gantt(_Answer):
    """Nodes by GPU type and name. node_count: of all pages; next: the cursor of the next page, null
    on the last."""

    at: str
    from_: str = msgspec.field(name="from")
    to: str
    node_count: int
    next: int | None
    nodes: list[GanttNode]


class PageTicket(_Answer):
    """url: the address that lets a browser in, where the daemon knows under which address it is
    reached: over TCP it is the one that was asked."""

    ticket: str
    expires_at: str
    path: str
    url: str | None


class PassName(_Answer):
    pass_id: int
    at: str


class Move(_Answer):
    """A planned start that moved; from null: there was none, to null: there is none any more.
    cause: started; overtaken, preemption or overrun (job_id); order (nothing changed but the time);
    or the kind of the event event_id. pass_id null: it was no pass, but that event itself."""

    pass_id: int | None
    at: str
    from_: str | None = msgspec.field(name="from")
    to: str | None
    cause: str
    event_id: int | None
    job_id: int | None
    text: str


class Moved(_Answer):
    id: int
    name: str
    user: str
    change: Literal["later", "earlier", "new", "started", "gone"]
    from_: str | None = msgspec.field(name="from")
    to: str | None
    moves: list[Move]


class PlanDiff(_Answer):
    """The jobs whose planned starts are not the same after the one pass and the other."""

    from_: PassName = msgspec.field(name="from")
    to: PassName
    jobs: list[Moved]


class Digests(_Answer):
    """SHA-256 of what was noted then and of what comes out now."""

    equal: bool
    then: str
    now: str


class ReadDigests(Digests):
    """Of what a pass read: eight bytes for each part. differs: the parts that are not as then;
    null: there are none, or that pass has no parts."""

    differs: list[Literal["classes", "nodes", "shapes", "limits", "queue", "releases"]] | None


class Versions(_Answer):
    """Digests of the planning functions and of the settings they go by."""

    then: str
    now: str


class Difference(_Answer):
    """name: a job, for a refusal its shape, for a limit a class of jobs; of these job_id is the
    first that waited with it, and jobs how many did. null: there is none."""

    kind: Literal["start", "planned", "preempt", "refusal", "limit"]
    name: str
    job_id: int | None
    jobs: int | None
    then: str | None
    now: str | None


class Replayed(_Answer):
    """A pass decided once more. equal: it read the same and decided the same. chain: its digests
    follow from those of the pass before; null when that one is not kept."""

    pass_id: int
    at: str
    term: int
    policy: Versions
    input: ReadDigests
    output: Digests
    chain: bool | None
    looked: int
    starts: int
    planned: int
    equal: bool
    differences: list[Difference]


class WhatIf(_Answer):
    """In the order asked: when each job would start if it alone were submitted at that moment."""

    at: str
    jobs: list[Preview]


class TestOnly(_Answer):
    """The answer to --test-only and --preview-preemption: nothing was submitted."""

    test_only: Preview
    preview_preemption: bool
    json: bool
    warnings: list[str]


class SubmitOption(_Answer):
    long: str
    short: str | None
    value: str | None
    help: str


class SubmitOptions(_Answer):
    options: list[SubmitOption]


class NodeBooking(_Answer):
    """A booking that has a node, and the occurrence meant."""

    id: int
    name: str
    kind: Literal["maintenance", "use"]
    starts_at: str
    ends_at: str


class Node(_Answer):
    """free_at: when the time limits of all its jobs are over. efa_domain: its placement group;
    topology: the layers of the network it hangs on, outermost first, the last its block. booking:
    that has it now; next_booking: that has it next."""

    name: str
    gpu_type: str
    state: Literal["IDLE", "MIXED", "ALLOCATED", "DRAIN", "DRAINING", "DOWN"]
    gpus: int
    gpus_used: int
    cpus: int
    cpus_used: int
    mem_mib: int
    mem_used_mib: int
    zone: str | None
    efa_domain: str | None
    topology: list[str]
    features: list[str]
    partitions: list[str]
    reason: str | None
    reason_by: str | None
    state_at: str | None
    declared: bool
    jobs: list[int]
    free_at: str | None
    booking: NodeBooking | None
    next_booking: NodeBooking | None


class NodeList(_Answer):
    nodes: list[Node]


class Booking(_Answer):
    """starts_at, ends_at: of the occurrence that is on or comes next; of a booking that is over as
    it was made. node_list, gpu_type, partition, node_count, all_nodes: which nodes were asked for;
    node_names: those it has. reason: what it lacks. jobs: those that live and name it, at most
    1000."""

    id: int
    name: str
    kind: Literal["maintenance", "use"]
    state: Literal["PLANNED", "ACTIVE", "ENDED", "DELETED"]
    state_at: str
    starts_at: str
    ends_at: str
    duration_s: int
    repeats: Literal["none", "daily", "weekly", "weekdays"]
    until: str | None
    node_list: list[str]
    gpu_type: str | None
    partition: str | None
    all_nodes: bool
    node_count: int | None
    node_names: list[str]
    users: list[str]
    accounts: list[str]
    jobs: list[int]
    ignore_running: bool
    comment: str | None
    reason: str | None
    created_by: str
    created_at: str


class BookingList(_Answer):
    bookings: list[Booking]


class Licence(_Answer):
    """jobs: those that hold it, at most 1000."""

    name: str
    total: int
    used: int
    free: int
    jobs: list[int]


class LicenceList(_Answer):
    licences: list[Licence]


Limits = dict[str, dict[str, int]]
"""{per: {what: value}}: see docs/operating/accounts-and-limits.md."""


class Partition(_Answer):
    """plan_depth: of its policy, how many of its jobs are protected at once."""

    name: str
    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"]
    is_default: bool
    policy: str
    placement: Literal["pack", "spread"]
    tier: int
    plan_depth: int
    max_time_limit_s: int | None
    default_time_limit_s: int | None
    max_nodes: int | None
    def_mem_per_cpu_mib: int | None
    all_nodes: bool
    limits: Limits
    node_names: list[str]
    gpus: int
    gpus_free: int
    gpu_types: list[str]


class PartitionList(_Answer):
    partitions: list[Partition]


class Policy(_Answer):
    """How jobs are ordered. max_wait_s: who waited longer goes to the front, first come, first
    served. backfill: the order of the candidates behind the protected jobs."""

    name: str
    ordering: Literal["fifo", "multifactor", "sjf", "saf", "wfp3", "odc"]
    max_wait_s: int | None
    backfill: Literal["order", "fifo", "sjbf", "safbf"]
    plan_depth: int
    partitions: list[str]


class PolicyList(_Answer):
    policies: list[Policy]


class Domain(_Answer):
    """Where a gang of whole nodes stays. domain: ZONE/GROUP; null where that does not matter."""

    domain: str | None
    nodes: int
    nodes_whole: int


class TypeFragmentation(_Answer):
    """Of nodes that are up. gpus_whole: free on nodes with all GPUs free; fragmented: the share of
    the free ones that lie elsewhere, null when none is free. largest_gang: whole nodes that one
    gang could take. fits: how many jobs with so many GPUs on one node."""

    gpu_type: str
    nodes: int
    gpus: int
    gpus_free: int
    gpus_whole: int
    fragmented: float | None
    nodes_whole: int
    largest_gang: int
    fits: dict[str, int]
    domains: list[Domain]


class Fragmentation(_Answer):
    types: list[TypeFragmentation]


class Account(_Answer):
    """qos null: as the account above."""

    name: str
    parent: str | None
    description: str | None
    organisation: str | None
    shares: int
    default_qos: str | None
    qos: list[str] | None
    coordinators: list[str]
    users: list[str]
    limits: Limits


class AccountList(_Answer):
    accounts: list[Account]


class Qos(_Answer):
    name: str
    description: str | None
    priority: int
    restricted: bool
    deny_on_limit: bool
    usage_factor: float
    preempts: list[str]
    preempt_mode: Literal["requeue", "cancel"]
    exempt_s: int
    grace_s: int
    idle_warn_s: int
    idle_release_s: int
    limits: Limits


class QosList(_Answer):
    qos: list[Qos]


class Membership(_Answer):
    """partition null: in all of them. qos null: as the account."""

    account: str
    partition: str | None
    shares: int
    default_qos: str | None
    qos: list[str] | None
    limits: Limits


class User(_Answer):
    user: str
    uid: int
    default_account: str | None
    coordinates: list[str]
    accounts: list[Membership]


class UserList(_Answer):
    users: list[User]


class Member(_Answer):
    user: str
    account: str


class LoginAnswer(_Answer):
    key: str
    """Shown this once: send it as Authorization: Bearer KEY."""
    prefix: str
    expires_at: str
    user: str
    uid: int
    account: str
    """At AWS."""
    role: str


class RotatedKey(_Answer):
    key: str
    """Shown this once. The one that asked for it has ended."""
    prefix: str
    expires_at: str


class Key(_Answer):
    prefix: str | None
    """The first characters of the key, after odc_."""
    made_at: str
    expires_at: str
    last_used_at: str | None
    """To the minute."""


class EndedKeys(_Answer):
    """How many of the user's held until now."""

    user: str
    keys: int
    page_sessions: int


class Me(_Answer):
    user: str
    uid: int
    gid: int
    operator: bool
    key: Key | None
    """The key that asks; null on the socket."""
    sessions: int
    """How many of the user's keys hold."""
    page_sessions: int
    """And how many browsers are let in to the page as the user."""
    github_user: str | None
    """Whose SSH keys enter the dev servers of who asks."""


class Factors(_Answer):
    age: float
    size: float
    fairshare: float
    qos: float
    partition: float


class Priority(_Answer):
    """priority: the sum of points less nice; a point is a factor (0 to 1) times its weight. It
    orders the job only where ordering, its partition's, is multifactor."""

    id: int
    user: str
    account: str | None
    qos: str | None
    partition: str | None
    policy: str
    ordering: str
    priority: int
    nice: int
    factors: Factors
    points: Factors


class Weights(_Answer):
    age: int
    size: int
    fairshare: int
    qos: int
    partition: int


class PriorityList(_Answer):
    """more: there are more than the limit."""

    at: str
    weights: Weights
    max_age_s: int
    half_life_s: int
    jobs: list[Priority]
    more: bool


class Share(_Answer):
    """An account, or a user of it. used_s: GPU-seconds as billed, decayed. norm_shares and
    effective_usage: of what its siblings have together; level_fs the one over the other, null
    where nothing was used. fairshare: the factor of a user."""

    account: str
    user: str | None
    uid: int | None
    depth: int
    raw_shares: int
    norm_shares: float
    used_s: int
    effective_usage: float
    level_fs: float | None
    fairshare: float | None


class ShareList(_Answer):
    at: str
    half_life_s: int
    used_s: int
    shares: list[Share]


class Accounting(_Answer):
    weights: Weights
    max_age_s: int
    half_life_s: int
    enforce: bool
    cpus_per_gpu: int


class Leader(_Answer):
    term: int
    holder: str | None
    host: str | None
    taken_at: str | None


class Pass(_Answer):
    id: int
    at: str
    looked: int
    started: int
    took_ms: float


class EtaScore(_Answer):
    """How jobs that started in the last 7 days compare with what was told at their submit; null
    where none was scored. coverage: the fraction that started between p10 and p90. foreseen:
    pending jobs that have an expected start now."""

    scored: int
    coverage: float | None
    mean_abs_error_s: int | None
    bias_s: int | None
    mean_width_s: int | None
    foreseen: int
    refreshed_at: str | None


class ExecutorState(_Answer):
    """What runs the jobs, as the daemon that answers sees it. unreached_s: for how long it has not
    answered; 0: it does. null: another daemon commands it."""

    name: str | None
    unreached_s: int | None


class Cluster(_Answer):
    """jobs counts rows by state, pending_tasks every array task that waits."""

    at: str
    executor: ExecutorState
    leader: Leader
    jobs: dict[str, int]
    pending_tasks: int
    oldest_pending_s: int | None
    nodes: dict[str, int]
    gpus: dict[str, int]
    last_pass: Pass | None
    planned: int
    eta: EtaScore
    last_event_id: int


class Event(_Answer):
    """The data of a server-sent event. kind "lagged": the client was too slow and must come again
    with this id."""

    id: int
    at: str
    kind: str
    actor: str
    job_id: int | None = None
    array_job_id: int | None = None
    array_task_id: int | None = None
    node: str | None = None
    detail: dict[str, Any] = {}


class Info(_Answer):
    """Paths of this server."""

    version: str
    name: Literal["odc"] = "odc"
    docs: Literal["/docs"] = "/docs"
    openapi: Literal["/openapi.json"] = "/openapi.json"
    health: Literal["/health"] = "/health"


class Health(_Answer):
    status: Literal["ok"]
    version: str


class Ready(_Answer):
    """503 when a check is false."""

    ready: bool
    checks: dict[str, bool]
