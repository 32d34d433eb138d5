"""The columns of squeue: by letter for -o, by name for -O."""

from __future__ import annotations

from odcd.slurm.columns import values as v
from odcd.slurm.columns.table import Column
from odcd.slurm.columns.values import JobRow
from odcd.slurm.groups import group_name
from odcd.slurm.hostlists import compress_hosts

DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
_ID = ("array_job_id", "array_task_id", "array_tasks", "array_throttle")
_RUN = ("started_at", "ended_at")
_PATH = ("array_job_id", "array_task_id", "name", "user", "work_dir")
_SIZE = ("cpus_per_node", "node_count", "mem_per_node_mib", "gpus", "gpu_type")
_NODES = ("node_names", "state", "reason")


SCORE = ("score", "reason")
"""Not a field of jobs: the planner's numbers are read beside them."""
ASKED = ("asked",)
"""Nor is this: see odcd.records.requested."""


def _task(row: JobRow) -> str:
    if row.array_tasks is not None:
        return row.array_tasks
    return "N/A" if row.array_task_id is None else str(row.array_task_id)


def _start(row: JobRow) -> str:
    return v.moment(row, row.started_at or row.planned_start_at)


def _end(row: JobRow) -> str:
    if row.ended_at is None and row.started_at is not None and row.time_limit_s is not None:
        return v.moment(
            row, row.started_at.fromtimestamp(row.started_at.timestamp() + row.time_limit_s,
                                              row.started_at.tzinfo),
        )  # fmt: skip
    return v.moment(row, row.ended_at)


def _or_null(text: str | None) -> str:
    return text or "(null)"


_JOB = Column("JOBID", lambda r: str(r.id))
_ARRAY = Column("JOBID", v.job_id, _ID)
_BASE = Column("ARRAY_JOB_ID", lambda r: str(r.array_job_id or r.id), ("array_job_id",))
_TASK = Column("ARRAY_TASK_ID", _task, ("array_task_id", "array_tasks"))
_NAME = Column("NAME", lambda r: r.name, ("name",))
_USER = Column("USER", lambda r: r.user, ("user",))
_UID = Column("UID", lambda r: str(r.uid), ("uid",))
_PARTITION = Column("PARTITION", lambda r: r.partition or "", ("partition",))
_ACCOUNT = Column("ACCOUNT", lambda r: _or_null(r.account), ("account",))
_QOS = Column("QOS", lambda r: _or_null(r.qos), ("qos",))
_CODE = Column("ST", v.state_code, ("state",))
_STATE = Column("STATE", v.state_word, ("state",))
_REASON = Column("REASON", v.reason, ("state", "reason"))
_WHERE = Column("NODELIST(REASON)", v.nodes_or_reason, _NODES)
_NODELIST = Column("NODELIST", v.nodes, ("node_names",))
_USED = Column("TIME", lambda r: v.clock(v.elapsed_s(r)), _RUN)
_LIMIT = Column("TIME_LIMIT", v.limit, ("time_limit_s",))
_LEFT = Column("TIME_LEFT", v.left, ("time_limit_s", *_RUN))
_NO_TRES = Column("TRES_PER_JOB", lambda _: "N/A")
_COUNT = Column("NODES", lambda r: str(r.node_count), ("node_count",))
_CPUS = Column("CPUS", lambda r: str(v.cpus(r)), ("cpus_per_node", "node_count"))
_MEMORY = Column("MIN_MEMORY", lambda r: v.memory(r.mem_per_node_mib), ("mem_per_node_mib",))
_TRES = Column("TRES_PER_NODE", v.gres, ("gpus_per_node", "gpu_type"))
_BATCH = Column("EXEC_HOST", lambda r: r.node_names[0] if r.node_names else "n/a", ("node_names",))
_START = Column("START_TIME", _start, ("started_at", "planned_start_at"))
_END = Column("END_TIME", _end, (*_RUN, "time_limit_s"))
_SUBMIT = Column("SUBMIT_TIME", lambda r: v.moment(r, r.submitted_at), ("submitted_at",))
_DIR = Column("WORK_DIR", lambda r: r.work_dir, ("work_dir",))
_COMMENT = Column("COMMENT", lambda r: _or_null(r.comment), ("comment",))
_DEPEND = Column("DEPENDENCY", lambda r: _or_null(r.dependency), ("dependency",))
_NICE = Column("NICE", lambda r: str(r.nice), ("nice",))
_BOOKING = Column("RESERVATION", lambda r: _or_null(r.booking), ("booking",))
_LICENCES = Column("LICENSES", lambda r: _or_null(v.licences(r)), ("licences",))
_EXIT = Column("EXIT_CODE", v.exit_code, ("exit_code", "signal"))
_SECONDS = Column("TIME", lambda r: str(v.elapsed_s(r)), _RUN)
_ELIGIBLE = Column("ELIGIBLE_TIME", lambda r: v.moment(r, r.eligible_at), ("eligible_at",))
_STDOUT = Column("STDOUT", v.output, ("stdout", *_PATH))
_STDERR = Column("STDERR", lambda r: v.output(r, r.stderr), ("stdout", "stderr", *_PATH))
_PRIORITY = Column("PRIORITY", lambda r: str(v.priority(r)), SCORE)
_SHARE = Column("PRIORITY", lambda r: f"{v.priority(r) / 2**32:.14f}", SCORE)
_FEATURES = Column("FEATURES", lambda r: _or_null(r.asked and r.asked.constraint), ASKED)
_WANTED = Column("REQ_NODES", lambda r: compress_hosts(r.asked.nodes) if r.asked else "", ASKED)
_AVOIDED = Column("EXC_NODES", lambda r: compress_hosts(r.asked.excluded) if r.asked else "", ASKED)
_SHARED = Column("OVER_SUBSCRIBE", lambda r: "NO" if r.asked and r.asked.exclusive else "OK", ASKED)
_TMP = Column("MIN_TMP_DISK", lambda r: str(r.asked.tmp_mib) if r.asked else "0", ASKED)
_GID = Column("GROUP", lambda r: str(r.asked.gid) if r.asked else "", ASKED)
_GROUP = Column("GROUP", lambda r: group_name(r.asked.gid) if r.asked else "", ASKED)
_COMMAND = Column("COMMAND", lambda r: _or_null(v.command(r)), (*ASKED, "work_dir"))
_REQUEUE = Column("REQUEUE", lambda r: str(int(r.asked.requeue)) if r.asked else "", ASKED)
_TASKS = Column("TASKS", lambda r: str(v.tasks(r)), (*ASKED, "node_count"))
_MIN_CPUS = Column("MIN_CPUS", lambda r: str(v.cpus_per_task(r)), (*ASKED, "cpus_per_node"))
_WAITED = Column("PENDING_TIME", v.pending_s, ("submitted_at", *_RUN))
_CONTIGUOUS = Column("CONTIGUOUS", lambda _: "0")
_SPECIALIZED = Column("CORE_SPEC", lambda _: "N/A")
_PLANNED = Column("SCHEDNODES", lambda _: "(null)")
_KEY = Column("WCKEY", lambda _: "(null)")
_SOCKETS = Column("SOCKETS_PER_NODE", lambda _: "*")
_CORES = Column("CORES_PER_SOCKET", lambda _: "*")
_THREADS = Column("THREADS_PER_CORE", lambda _: "*")
_LAYOUT = Column("S:C:T", lambda _: "*:*:*")
_RESTARTS = Column("RESTART_COUNT", lambda r: str(r.restarts), ("restarts",))

LETTERS: dict[str, Column] = {
    "A": _JOB, "i": _ARRAY, "F": _BASE, "K": _TASK, "j": _NAME, "u": _USER, "U": _UID,
    "P": _PARTITION, "a": _ACCOUNT, "q": _QOS, "t": _CODE, "T": _STATE, "r": _REASON, "R": _WHERE,
    "N": _NODELIST, "M": _USED, "l": _LIMIT, "L": _LEFT, "D": _COUNT, "C": _CPUS, "m": _MEMORY,
    "b": _TRES, "B": _BATCH, "S": _START, "e": _END, "V": _SUBMIT, "Z": _DIR, "k": _COMMENT,
    "E": _DEPEND, "y": _NICE, "v": _BOOKING, "W": _LICENCES, "Q": _PRIORITY, "p": _SHARE,
    "f": _FEATURES, "n": _WANTED, "x": _AVOIDED, "h": _SHARED, "d": _TMP, "G": _GID, "g": _GROUP,
    "o": _COMMAND, "c": _MIN_CPUS, "O": _CONTIGUOUS, "X": _SPECIALIZED, "Y": _PLANNED, "w": _KEY,
    "H": _SOCKETS, "I": _CORES, "J": _THREADS, "z": _LAYOUT,
    "s": Column("SELECT_JOBINFO", lambda _: ""),
}  # fmt: skip
ALL = "%a|%A|%B|%c|%C|%d|%D|%e|%E|%f|%F|%g|%G|%h|%H|%i|%I|%j|%J|%k|%K|%l|%L|%m|%M|%n|%N|%o|%O|%p|\
%P|%q|%Q|%r|%R|%S|%t|%T|%u|%U|%v|%V|%w|%W|%x|%X|%y|%Y|%z|%Z"
"""The meaning of %all."""

NAMES: dict[str, Column] = {
    "jobid": _JOB, "jobarrayid": _ARRAY, "arrayjobid": _BASE, "arraytaskid": _TASK, "name": _NAME,
    "jobname": _NAME, "username": _USER, "userid": _UID, "partition": _PARTITION,
    "account": _ACCOUNT, "qos": _QOS, "statecompact": _CODE, "state": _STATE, "reason": _REASON,
    "reasonlist": _WHERE, "nodelist": _NODELIST, "timeused": _USED, "timelimit": _LIMIT,
    "timeleft": _LEFT, "numnodes": _COUNT, "numcpus": _CPUS, "minmemory": _MEMORY,
    "tres-per-node": _TRES, "gres": _TRES, "batchhost": _BATCH, "starttime": _START,
    "endtime": _END, "submittime": _SUBMIT, "workdir": _DIR, "comment": _COMMENT,
    "dependency": _DEPEND, "nice": _NICE, "reservation": _BOOKING, "licenses": _LICENCES,
    "exit_code": _EXIT, "timeusedseconds": _SECONDS, "eligibletime": _ELIGIBLE, "stdout": _STDOUT,
    "stderr": _STDERR, "restartcnt": _RESTARTS,
    "tres-alloc": Column("TRES_ALLOC", v.tres, _SIZE), "prioritylong": _PRIORITY,
    "priority": _SHARE, "feature": _FEATURES, "reqnodes": _WANTED, "excnodes": _AVOIDED,
    "oversubscribe": _SHARED, "mintmpdisk": _TMP, "groupid": _GID, "groupname": _GROUP,
    "command": _COMMAND, "mincpus": _MIN_CPUS, "contiguous": _CONTIGUOUS,
    "corespec": _SPECIALIZED, "schednodes": _PLANNED, "wckey": _KEY, "sockets": _SOCKETS,
    "cores": _CORES, "threads": _THREADS, "sct": _LAYOUT, "requeue": _REQUEUE,
    "numtasks": _TASKS, "ntasks": _TASKS, "pendingtime": _WAITED, "maxnodes": _COUNT,
    "maxcpus": _CPUS, "cpus-per-task": Column("CPUS_PER_TASK", _MIN_CPUS.value, _MIN_CPUS.fields),
    "tres-per-job": _NO_TRES, "tres-per-task": _NO_TRES, "tres-per-socket": _NO_TRES,
    "lastschedeval": Column("LAST_SCHED_EVAL", lambda _: "N/A"),
    "preempttime": Column("PREEMPT_TIME", lambda _: "N/A"),
    "accruetime": Column("ACCRUE_TIME", _ELIGIBLE.value, _ELIGIBLE.fields),
    "admin_comment": Column("ADMIN_COMMENT", lambda _: "(null)"),
    "system_comment": Column("SYSTEM_COMMENT", lambda _: "(null)"),
    "cluster": Column("CLUSTER", lambda _: "odc"), "network": Column("NETWORK", lambda _: "(null)"),
    "deadline": Column("DEADLINE", lambda _: "N/A"), "profile": Column("PROFILE", lambda _: "N/A"),
    "allocsid": Column("ALLOC_SID", lambda _: "0"),
    "delayboot": Column("DELAY_BOOT", lambda _: "0"),
    "allocnodes": Column("ALLOC_NODES", lambda r: (r.asked and r.asked.submit_host) or "", ASKED),
}  # fmt: skip
