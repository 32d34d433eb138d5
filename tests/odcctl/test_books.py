"""odcctl account, qos, user, shares, priority: what they send, and what they show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import (
    a_qos,
    a_share,
    a_user,
    accounting,
    an_account,
    priorities,
)
from tests.odcctl.peer import Peer, problem

ACCOUNTS = [
    an_account("default"),
    an_account(
        "physics", shares=10, users=["ann"], coordinators=["bob"], default_qos="normal",
        qos=["normal", "urgent"], limits={"group": {"gpus": 64}},
    ),
    an_account(
        "lasers", parent="physics", description="Light", organisation="Dept. 4",
        limits={"job": {"wall_s": 86400}, "user": {"jobs": 4}},
    ),
]  # fmt: skip
QOS = [
    a_qos("urgent", priority=100, restricted=True, preempts=["normal"], usage_factor=2.5),
    a_qos(
        "normal", preempt_mode="cancel", exempt_s=3600, grace_s=30, limits={"user": {"gpus": 16}}
    ),
]
USERS = [a_user("ann"), a_user("bob", default_account=None, coordinates=["physics"], accounts=[])]


def test_lists_are_tables(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    peer.on("GET", "/v1/accounts", {"accounts": ACCOUNTS})
    peer.on("GET", "/v1/qos", {"qos": QOS})
    peer.on("GET", "/v1/users", {"users": USERS})
    verbs = ("account", "qos", "user")
    golden("books", "\n".join(odcctl(verb, "list").out for verb in verbs))
    assert odcctl("account", "list", "--output", "quiet").out == "default\nphysics\nlasers\n"
    assert odcctl("user", "list", "--output", "quiet").out == "ann\n"
    run = odcctl("user", "list", "--account", "x", "--no-header")
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith('odcctl: account "x" does not exist\n  Accounts: default, ')
    assert odcctl("qos", "list", "--json").out.startswith('{"qos": [')


def test_one_is_shown_whole(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    peer.on("GET", "/v1/accounts/lasers", ACCOUNTS[2])
    peer.on("GET", "/v1/qos/normal", QOS[1])
    peer.on("GET", "/v1/users/ann", USERS[0])
    shown = (("account", "lasers"), ("qos", "normal"), ("user", "ann"))
    golden("book", "\n".join(odcctl(verb, "show", name).out for verb, name in shown))


def test_shares_and_priorities_are_tables(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    shares = [
        a_share("physics", raw_shares=10, norm_shares=0.909091, level_fs=1.212121),
        a_share("lasers", depth=1),
        a_share("lasers", depth=2, user="ann", uid=1, fairshare=0.5),
        a_share("lasers", depth=2, user="bob", uid=2, used_s=0, level_fs=None, fairshare=1.0),
    ]
    peer.on(
        "GET", "/v1/shares",
        {"at": "2026-07-01T14:00:00Z", "half_life_s": 604800, "used_s": 99, "shares": shares},
    )  # fmt: skip
    peer.on("GET", "/v1/priority", priorities())
    out = odcctl("priority", "--user", "ann", "7", "8", "--limit", "5")
    assert peer.requests[-1].query == {"user": "ann", "id": "7,8", "limit": "5"}
    assert out.err == (
        "there are more jobs; use --limit to list them\n"
        "partition main is ordered by policy odc, not by this priority\n"
    )
    factors = odcctl("priority", "--factors")
    golden("shares", "\n".join([odcctl("shares").out, out.out, factors.out]))
    assert odcctl("shares", "--user", "bob", "--output", "quiet").out == "bob\n"
    assert 'account "x" does not exist' in odcctl("shares", "--account", "x").err
    peer.on("GET", "/v1/jobs", problem(404, "UnknownUser", "OD027", "user bobb is unknown"))
    assert (odcctl("shares", "--user", "bobb").code, peer.requests[-1].query["user"]) == (1, "bobb")
    assert odcctl("priority", "--output", "quiet").out == "7\n8\n"


SENT: dict[str, tuple[list[str], str, str, Any, str]] = {
    "account-create": (
        ["account", "create", "lab", "--parent", "physics", "--shares", "3", "--qos", "a,b",
         "--default-qos", "a", "--limit", "group.gpus=8,job.wall=1-0", "--limit", "user.jobs=none"],
        "POST", "/v1/accounts",
        {"name": "lab", "parent": "physics", "shares": 3, "qos": ["a", "b"], "default_qos": "a",
         "limits": {"group": {"gpus": 8}, "job": {"wall": "1-0"}, "user": {"jobs": None}}},
        "account lab created\n"),
    "account-edit": (
        ["account", "edit", "lab", "--parent", "", "--qos", "none", "--description", "x"],
        "PATCH", "/v1/accounts/lab", {"parent": None, "qos": None, "description": "x"},
        "account lab changed\n"),
    "account-delete": (
        ["account", "delete", "a b"], "DELETE", "/v1/accounts/a b", None,
        "account a b deleted\n"),
    "qos-create": (
        ["qos", "create", "urgent", "--priority", "9", "--preempts", "a,b", "--restricted", "on",
         "--grace", "0:30", "--exempt", "10", "--usage-factor", "0.5", "--deny-on-limit", "off"],
        "POST", "/v1/qos",
        {"name": "urgent", "priority": 9, "preempts": ["a", "b"], "restricted": True,
         "grace": "0:30", "exempt": "10", "usage_factor": 0.5, "deny_on_limit": False},
        "QOS urgent created\n"),
    "qos-edit": (
        ["qos", "edit", "urgent", "--preempts", "none", "--preempt-mode", "cancel"],
        "PATCH", "/v1/qos/urgent", {"preempts": [], "preempt_mode": "cancel"},
        "QOS urgent changed\n"),
    "qos-delete": (
        ["qos", "delete", "urgent"], "DELETE", "/v1/qos/urgent", None, "QOS urgent deleted\n"),
    "user-add": (
        ["user", "add", "ann", "--account", "lab", "--default", "--uid", "7", "--shares", "2",
         "--limit", "group.gpus=4", "-p", "main"],
        "POST", "/v1/accounts/lab/users",
        {"user": "ann", "uid": 7, "default": True, "shares": 2, "partition": "main",
         "limits": {"group": {"gpus": 4}}},
        "user ann added to account lab\n"),
    "user-edit": (
        ["user", "edit", "ann", "-A", "lab", "--qos", "none", "--default-qos", ""],
        "PATCH", "/v1/accounts/lab/users/ann", {"qos": None, "default_qos": None},
        "user ann changed\n"),
    "user-remove": (
        ["user", "remove", "ann", "-A", "lab", "-p", "main"],
        "DELETE", "/v1/accounts/lab/users/ann", None, "user ann removed from account lab\n"),
    "coordinator": (
        ["user", "coordinator", "bob", "-A", "lab"], "POST", "/v1/accounts/lab/coordinators",
        {"user": "bob"}, "user bob is a coordinator of account lab\n"),
    "coordinator-off": (
        ["user", "coordinator", "bob", "-A", "lab", "--off"],
        "DELETE", "/v1/accounts/lab/coordinators/bob", None,
        "user bob is no longer a coordinator of account lab\n"),
    "settings": (
        ["account", "settings", "--enforce", "on", "--cpus-per-gpu", "12"],
        "PATCH", "/v1/accounting", {"enforce": True, "cpus_per_gpu": 12},
        "everyone may use every account; 24 CPUs are billed as one GPU\n"),
    "weights": (
        ["priority", "--set-weight", "age=5,qos=6", "--set-weight", "size=0",
         "--set-half-life", "14-0"],
        "PATCH", "/v1/accounting",
        {"weights": {"age": 5, "qos": 6, "size": 0}, "half_life": "14-0"},
        "weights: age 1000, size 100, fairshare 10000, qos 10000, partition 1000; age counts up to"
        " 7-00:00:00; used time halves in 7-00:00:00\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", SENT)
def test_the_given_options_are_sent(peer: Peer, odcctl: Odcctl, case: str) -> None:
    arguments, method, path, body, output = SENT[case]
    peer.on(method, path, accounting() if path == "/v1/accounting" else {"name": "x"})
    done = odcctl(*arguments)
    assert (done.err, done.out) == ("", output)
    [request] = peer.requests
    assert request.body == body
    assert ("idempotency-key" in request.headers) == (
        case in ("account-create", "qos-create", "user-add")
    )
    if case == "user-remove":
        assert request.query == {"partition": "main"}


def test_settings_are_shown_when_nothing_is_said(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/accounting", accounting(enforce=True))
    assert odcctl("account", "settings").out == (
        "only its users may use an account; 24 CPUs are billed as one GPU\n"
    )


def test_a_refusal_shows_its_code_and_hint(peer: Peer, odcctl: Odcctl) -> None:
    message = 'QOS "a" would preempt itself'
    peer.on("PATCH", "/v1/qos/a", problem(400, "BadRequest", "OD010", message, "Do not."))
    refused = odcctl("qos", "edit", "a", "--preempts", "a")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"odcctl: {message} (OD010)\n  Do not.\n"


WRONG = {
    "no-action": ["account", "make", "a"],
    "no-name": ["account", "create"],
    "two-names": ["qos", "show", "a", "b"],
    "list-name": ["user", "list", "a"],
    "foreign-option": ["account", "show", "a", "--shares", "1"],
    "nothing": ["qos", "edit", "a"],
    "nothing-but-partition": ["user", "edit", "a", "-A", "x", "-p", "main"],
    "no-account": ["user", "add", "a"],
    "limit-form": ["qos", "edit", "a", "--limit", "gpus=4"],
    "limit-number": ["qos", "edit", "a", "--limit", "user.gpus=-4"],
    "shares": ["account", "edit", "a", "--shares", "many"],
    "on-off": ["qos", "edit", "a", "--restricted", "yes"],
    "factor": ["qos", "edit", "a", "--usage-factor", "x"],
    "weight": ["priority", "--set-weight", "luck=1"],
    "weight-and-jobs": ["priority", "--set-weight", "age=1", "7"],
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage_sends_no_request(peer: Peer, odcctl: Odcctl, case: str) -> None:
    done = odcctl(*WRONG[case])
    assert (done.code, done.out) == (2, "")
    assert f"odcctl {WRONG[case][0]}" in done.err
    assert peer.requests == []
