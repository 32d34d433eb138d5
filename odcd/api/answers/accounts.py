"""Answers about accounts, QOS, users and their shares."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer
from odcd.api.answers.partitions import Limits


class Account(Answer):
    """qos null: same as the parent."""

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


class AccountList(Answer):
    accounts: list[Account]


class Qos(Answer):
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


class QosList(Answer):
    qos: list[Qos]


class Membership(Answer):
    """partition null: all partitions. qos null: same as the account."""

    account: str
    partition: str | None
    shares: int
    default_qos: str | None
    qos: list[str] | None
    limits: Limits


class User(Answer):
    user: str
    uid: int
    default_account: str | None
    coordinates: list[str]
    accounts: list[Membership]


class UserList(Answer):
    users: list[User]


class Member(Answer):
    user: str
    account: str


class Factors(Answer):
    age: float
    size: float
    fairshare: float
    qos: float
    partition: float


class Priority(Answer):
    """priority: the sum of points, minus nice; points are factors (0 to 1) times their weights.
    Priority orders a job only if ordering, the value of its partition, is multifactor."""

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


class Weights(Answer):
    age: int
    size: int
    fairshare: int
    qos: int
    partition: int


class PriorityList(Answer):
    """more: more jobs exist than the limit allows."""

    at: str
    weights: Weights
    max_age_s: int
    half_life_s: int
    jobs: list[Priority]
    more: bool


class Share(Answer):
    """An account, or one of its users. used_s: billed GPU-seconds, decayed. norm_shares and
    effective_usage: relative to the siblings' total. level_fs: norm_shares divided by
    effective_usage, null without usage. fairshare: a user's priority factor."""

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


class ShareList(Answer):
    at: str
    half_life_s: int
    used_s: int
    shares: list[Share]


class Accounting(Answer):
    weights: Weights
    max_age_s: int
    half_life_s: int
    enforce: bool
    cpus_per_gpu: int
