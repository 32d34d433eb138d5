"""The past covers everything that odc reports; a new function without a past fails here."""

from __future__ import annotations

import re

import asyncpg
import pytest

from odcd.database.schema import sql_folder
from tests.support.harness.database import Sql

# Tables without a past, and why they need none.
NO_PAST = {
    "term": "the past leader is not shown",
    "local_host": "the past leader is not shown",
    "job_text": "never changes",
    "shape": "never changes",
    "attempt": "written once; a job's attempt shows which had ended",
    "event": "is the past",
    "pass": "is the past",
    "facts": "only compared during a pass",
    "past_since": "is about the past",
    "pending_bound": "is a bound for submits, and counted again",
    "stored_bound": "is a bound for submits",
    "prediction": "is the past of eta",
    "eta": "prediction has its past",
    "eta_class": "input of predictions",
    "eta_day": "sums of the past",
    "run_time": "input of predictions",
    "run_time_new": "input of predictions",
    "node_strike": "node has the result",
    "node_quarantine": "node has the result",
    "step": "has its own start and end, and never waits",
    "kept_output": "stored after the end of its member",
    "reservation": "its job and its events have its past",
    "reservation_warning": "is the past",
    "box_key": "secrets are kept only while in use",
    "gpu": "the current GPUs",
    "gpu_meter": "the past leader is not shown",
    "gpu_now": "kept while it runs; gpu_use is kept longer",
    "gpu_use": "written when an attempt is over, and never changed",
    "box_look": "kept while it runs; its events have the result",
    "box_port": "kept while it runs",
    "box_jupyter": "kept while it runs; its events have its past",
    "box_phase": "is the past",
    "box_restart": "is the past",
    "disk": "pending has what a job lacked; its events have its past",
    "disk_volume": "as disk",
    "disk_snapshot": "as disk",
    "shared_storage": "as disk",
    "elastic_group": "its events have its past",
    "elastic_instance": "its events have its past",
    "elastic_need": "the events of its group name the jobs",
    "elastic_gone": "only hides nodes that are down",
    "tally": "sums of the past",
    "tally_histogram": "sums of the past",
    "tally_event": "the position of the sums",
    "tally_aside": "events missing in the sums",
    "server": "never changes",
    "disk_stray": "the current state of the cloud",
    "build": "its events have its past",
    "build_context": "kept only while in use",
    "build_asker": "answers to requests",
    "user_setting": "its events have its past",
    "idempotency": "answers to requests",
    "api_key": "answers to requests",
    "login_user": "events show who logged in",
    "login_signature": "answers to requests",
    "migration": "the installer's",
    "install": "the installer's",
    "planner": "the installer's",
    "running_use": "counted from running jobs",
    "history_gone": "a sum over deleted history",
    "history_export": "an export does not change the queue",
    "job_mail": "set at submit, and never changed",
    "webhook": "its events have its past",
    "notify_state": "the current settings",
    "notify_use": "counts of an hour",
    "outbox": "each row has its own times",
    "cron_table": "its events have its past",
    "cron_entry": "its events have its past",
    "disk_import": "its events have its past",
}
# Entry functions that change nothing with a past.
TIMELESS = {
    "take_term", "beat_term", "dispatches", "live_members", "unstarted_jobs",
    "keep_api_key", "use_api_key", "use_page_key", "rotate_api_key", "end_api_key",
    "revoke_api_key", "set_webhook", "remove_webhook", "take_outbox", "note_sent",
    "note_unsent", "configure_notifications", "tidy_outbox", "use_signature", "log_in",
    "refuse_login", "end_user_keys", "make_page_ticket", "begin_page_session", "holding_keys",
    "disable_cron", "request_import",
    "take_stops", "take_signals", "due_signals", "note_signals", "keep_output", "drop_outputs",
    "note_orphans", "create_step", "end_steps",
    "refresh_eta", "tidy_predictions", "predict_jobs", "take_canaries", "take_warnings",
    "take_node_notices", "owed_gpu_use", "store_gpu_use", "note_gpu_now",
    "keep_box_key", "record_progress", "take_disk_work", "note_contents", "note_jupyter",
    "note_box_port", "note_build", "fold_tally", "set_event_aside",
    "pick_old_jobs", "forget_jobs", "pick_old_events", "forget_events", "forget_texts",
    "forget_past", "forget_range", "end_long_reports",
    "past_jobs", "past_job", "past_page", "past_nodes", "past_why", "past_plan", "diff_plans",
    "replay_pass",
}  # fmt: skip
HEAD = re.compile(r"create or replace function odc\.(\w+)\((.*?)\)\nreturns", re.S)


def test_every_table_has_a_past_or_a_reason(sql: Sql) -> None:
    tables = set(
        sql.values(
            "select relname::text from pg_class where relnamespace = 'odc'::regnamespace "
            "and relkind in ('r', 'p') and not relispartition"
        )
    )
    with_past = {name.removesuffix("_past") for name in tables if name.endswith("_past")}
    forgotten = {t for t in tables if not t.endswith("_past")} - with_past - NO_PAST.keys()
    assert forgotten == set(), "make <table>_past in its migration, or say here why not"


def test_every_view_and_stable_function_is_there_for_the_past(sql: Sql) -> None:
    missing = sql.values(
        "select p.proname::text from pg_proc as p where p.pronamespace = 'odc'::regnamespace "
        "and p.provolatile = 's' and p.proname !~ '^_?(past|travel|replay)' "
        "and not exists (select from pg_proc as q where q.pronamespace = 'odc_past'::regnamespace "
        "and q.proname = p.proname)"
    )
    assert missing == []
    # They read the past: none names the schema of the present, or sets a search path of its own.
    wrong = sql.values(
        "select proname::text from pg_proc where pronamespace = 'odc_past'::regnamespace "
        r"and prorettype <> 'trigger'::regtype "
        r"and (prosrc ~ '\modc\.' or proconfig::text ~ 'search_path')"
    )
    assert wrong == []


def test_sql_functions_read_the_past_too(sql: Sql) -> None:
    """A view has no primary key: a group by that relies on one must name its columns."""
    sql.execute("set local search_path = odc_past, odc")
    for definition in sql.values(
        "select pg_get_functiondef(p.oid) from pg_proc as p join pg_language as l "
        "on l.oid = p.prolang where l.lanname = 'sql' "
        "and p.pronamespace = 'odc_past'::regnamespace order by p.proname"
    ):
        sql.execute(definition)


def test_a_new_column_needs_its_past(sql: Sql) -> None:
    sql.execute("alter table odc.pending add column colour text")
    with pytest.raises(asyncpg.AssertError, match=r"columns that odc\.pending_past lacks"):
        sql.execute("select odc._build_past()")
    sql.execute("alter table odc.pending_past add column colour text")
    sql.execute("select odc._build_past()")


def _functions() -> dict[str, tuple[str, str]]:
    texts = [path.read_text("utf-8") for path in (sql_folder() / "functions").rglob("*.sql")]
    heads = [(HEAD.search(text), text) for text in texts]
    return {head[1]: (head[2], text) for head, text in heads if head is not None}


def test_every_function_that_changes_something_sets_its_time() -> None:
    functions = _functions()
    tells = {
        name for name, (_, text) in functions.items()
        if re.search(r"_take_turn\(p_now\)|_set_now\(p_now\)", text)
    }  # fmt: skip
    silent = {
        name
        for name, (arguments, text) in functions.items()
        if not name.startswith("_")
        and " volatile" in text
        and re.search(r"\bp_now\b", arguments)
        and name not in tells | TIMELESS
        and not any(re.search(rf"\b{other}\(", text) for other in tells)
    }
    assert silent == set(), "call _take_turn(p_now) or _set_now(p_now) first"
