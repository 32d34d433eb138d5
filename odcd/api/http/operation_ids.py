"""operationId of each operation: a verb and what it acts on, as in list_jobs and cancel_job.

Generated clients name their functions after them, so an id never changes once it is released.
"""

from __future__ import annotations

import re

_PATH_PART = re.compile(r"{\w+}")
_VERBS = frozenset(("cancel", "hold", "release", "requeue", "extend", "rename", "clone", "unlock"))
_METHODS = {"POST": "create", "PUT": "set", "PATCH": "update", "DELETE": "delete"}
_SAME = frozenset(("qos",))
"""Nouns whose plural is the singular."""
_NAMED = {
    ("POST", "/v1/jobs"): "submit_job",
    ("POST", "/v1/jobs/batch"): "submit_jobs",
    ("POST", "/v1/submit-argv"): "submit_argv",
    ("GET", "/v1/jobs/{id}/why"): "explain_job",
    ("GET", "/v1/jobs/{id}/logs"): "get_job_logs",
    ("GET", "/v1/jobs/{id}/attach"): "attach_job",
    ("POST", "/v1/jobs/{id}/checkpoint"): "report_checkpoint",
    ("GET", "/v1/events"): "follow_events",
    ("GET", "/v1/jobs/{id}/events"): "follow_job_events",
    ("POST", "/v1/plan/what-if"): "preview_jobs",
    ("GET", "/v1/plan/diff"): "compare_plans",
    ("GET", "/v1/passes/{id}/replay"): "replay_pass",
    ("POST", "/v1/slurm/{command}"): "run_slurm_command",
    ("POST", "/v1/slurm-steps/{job}/{attempt}/{step}"): "send_step_input",
    ("POST", "/v1/slurm-allocations/{job}/release"): "release_allocation",
    ("GET", "/v1/reservations/{id}/ssh"): "connect_reservation_ssh",
    ("GET", "/v1/reservations/{id}/jupyter"): "connect_reservation_jupyter",
    ("POST", "/v1/builds"): "upload_build",
    ("GET", "/v1/cron"): "get_cron",
    ("GET", "/v1/idle"): "list_idle_gpus",
    ("GET", "/v1/users/me"): "get_me",
    ("PUT", "/v1/users/me"): "update_me",
    ("POST", "/v1/accounts/{account}/users"): "add_account_user",
    ("DELETE", "/v1/accounts/{account}/users/{user}"): "remove_account_user",
    ("POST", "/v1/accounts/{account}/coordinators"): "add_account_coordinator",
    ("DELETE", "/v1/accounts/{account}/coordinators/{user}"): "remove_account_coordinator",
    ("POST", "/v1/auth/login"): "log_in",
    ("POST", "/v1/keys/rotate"): "rotate_key",
    ("DELETE", "/v1/keys/current"): "delete_current_key",
    ("DELETE", "/v1/users/{user}/keys"): "delete_user_keys",
    ("GET", "/"): "get_info",
    ("GET", "/ready"): "get_readiness",
    ("GET", "/metrics"): "get_metrics",
    ("GET", "/openapi.json"): "get_openapi",
    ("GET", "/docs"): "get_docs",
}


def operation_id(method: str, path: str) -> str:
    """The name from the table, or one from the method and the nouns of the path."""
    named = _NAMED.get((method, path))
    if named is not None:
        return named
    parts = [part for part in path.replace("-", "_").split("/") if part and part != "v1"]
    verb = _METHODS.get(method, "get")
    if method == "POST" and parts[-1] in _VERBS:
        verb = parts.pop()
        many = not _PATH_PART.fullmatch(parts[-1])
    else:
        many = method == "GET" and not _PATH_PART.fullmatch(parts[-1])
        if many and (parts[-1] in _SAME or _singular(parts[-1]) != parts[-1]):
            verb = "list"
    nouns = [part for part in parts if not _PATH_PART.fullmatch(part)]
    last = nouns[-1] if many else _singular(nouns[-1])
    return "_".join([verb, *map(_singular, nouns[:-1]), last])


def _singular(noun: str) -> str:
    if noun in _SAME:
        return noun
    if noun.endswith("ies"):
        return f"{noun[:-3]}y"
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") else noun
