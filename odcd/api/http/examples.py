"""Examples of bodies and answers for /openapi.json.

They are made from the schemas: known fields have typical values, all others the first value that
their schema allows. Bodies with a choice of fields are written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
AT = "2026-01-31T12:00:00Z"
MAX_DEPTH = 6
_BODIES: Mapping[str, Json] = {
    "JobSpec": {
        "script": "#!/bin/sh\npython train.py\n", "work_dir": "/home/alice", "name": "train",
        "gpus": 2, "gpu_type": "h100", "time_limit_s": 14400,
    },
    "SubmitArgv": {
        "argv": ["--gpus=h100:2", "--time=4:00:00", "train.sh"], "work_dir": "/home/alice",
        "script": "#!/bin/sh\npython train.py\n", "script_path": "train.sh",
    },
    "Alternatives": {"argv": [["--gpus=h100:8", "--time=4:00:00"], ["--gpus=h100:4"]]},
    "UpdateJob": {"time_limit_s": 28800},
    "CancelMany": {"user": "alice", "state": "PENDING"},
    "CancelOne": {"signal": "USR1"},
    "Many": {"ids": ["12", "13_[1-4]"]},
    "RequeueMany": {"ids": ["12"], "hold": True},
    "SetCron": {
        "text": "#SCRON --time=30\n0 3 * * 1-5 ./nightly.sh\n", "zone": "Europe/Berlin",
        "work_dir": "/home/alice",
    },
    "ChangeNode": {"state": "DRAIN", "reason": "replace a fan"},
}  # fmt: skip
_VALUES: Mapping[str, object] = {
    "id": 12, "job_id": 12, "array_job_id": 10, "array_task_id": 3, "array_tasks": "3-9%2",
    "ids": ["12", "13"], "user": "alice", "uid": 1000, "account": "research",
    "partition": "main", "partitions": ["main"], "qos": "normal", "kind": "batch",
    "state": "RUNNING", "reason": "Resources", "gpus": 8, "gpus_per_node": 8, "gpu_type": "h100",
    "node": "gpu-01", "node_names": ["gpu-01"], "nodes": "gpu-[01-02]", "node_count": 1,
    "cpus_per_node": 96, "mem_per_node_mib": 1048576, "time_limit_s": 14400, "attempt": 1,
    "exit_code": 0, "work_dir": "/home/alice", "stdout": "/home/alice/slurm-12.out",
    "limit": "GrpGRES", "text": "job 11 holds 8 GPUs of gpu-01 until 12:00", "priority": 1200,
    "hours": 4, "cause": "running_job", "image": "ghcr.io/example/train:2026.1",
    "comment": "second run", "code": "OD006", "message": "job 12 does not exist",
    "hint": "Check the id.", "detail": "job 12 does not exist", "version": "1.0.0",
}  # fmt: skip
_NAMES: Mapping[str, str] = {
    "Job": "train", "Node": "gpu-01", "Booking": "maintenance", "MakeBooking": "maintenance",
    "Disk": "data", "MakeDisk": "data", "Partition": "main", "MakePartition": "main",
    "Account": "research", "MakeAccount": "research", "Qos": "normal", "MakeQos": "high",
    "Policy": "odc", "MakePolicy": "night", "Licence": "matlab", "User": "alice",
}  # fmt: skip
"""The value of the field `name`, by schema."""
_MOMENTS = frozenset(("at", "until", "since", "p10", "p50", "p90", "from", "to"))


def example_of(reference: Json, components: Mapping[str, Json], depth: int = 0) -> Json:
    """An object that the schema accepts. reference: {"$ref": …}, to a schema of an object."""
    name = reference["$ref"].rpartition("/")[2]
    if name in _BODIES and depth == 0:
        return dict(_BODIES[name])
    schema = components[name]
    required = schema.get("required", ())
    made: Json = {}
    for field, of in schema.get("properties", {}).items():
        # Optional fields of an answer apply to some objects only.
        if field in required or (field == "name" and name in _NAMES):
            own = _NAMES.get(name) if field == "name" else None
            made[field] = own or _value(field, of, components, depth + 1)
    return made


def _value(field: str, schema: Json, components: Mapping[str, Json], depth: int) -> object:
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null" and not (depth >= MAX_DEPTH and "$ref" in choice):
            return _value(field, choice, components, depth)
    if "anyOf" in schema:
        return None
    if "$ref" in schema:
        return example_of(schema, components, depth)
    known = _VALUES.get(field)
    if known is not None and _fits(known, schema):
        return known
    if "enum" in schema:
        return next((one for one in schema["enum"] if one is not None), None)
    return _of_type(field, schema, components, depth)


def _of_type(field: str, schema: Json, components: Mapping[str, Json], depth: int) -> object:
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items", {})
        if depth >= MAX_DEPTH or (not items and not schema.get("minItems")):
            return []
        return [_value(field.removesuffix("s"), items, components, depth + 1)]
    if kind == "object":
        return {}
    if kind == "string":
        is_moment = field.endswith("_at") or field in _MOMENTS
        return AT if is_moment or schema.get("format") == "date-time" else field or "text"
    if kind == "boolean":
        return False
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), schema.get("exclusiveMinimum", 0), 0)
    return {}


def _fits(value: object, schema: Json) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    types = {"integer": int, "number": (int, float), "string": str, "array": list}
    of = types.get(str(schema.get("type")))
    if of is None or not isinstance(value, of):
        return False
    items = schema.get("items", {})
    return not isinstance(value, list) or items.get("type") == "string"
