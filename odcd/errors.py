"""Every expected error: its OD code, which is also its SQLSTATE, and its HTTP status.

OdcError
├── Refused                 the request is invalid or not allowed (4xx)
│   ├── BadRequest          OD010  a value is missing, malformed or out of range
│   ├── UnknownPartition    OD001  no partition has that name
│   ├── UnknownAccount      OD002  no account has that name
│   ├── PlanStale           OD003  the database has changed since the plan was made
│   ├── UnknownQos          OD004  no QOS has that name
│   ├── UnknownGpuType      OD005  no node has GPUs of that type
│   ├── UnknownJob          OD006  no job has that id, or no task of the array has that number
│   ├── UnknownNode         OD007  no node has that name
│   ├── NeverFits           OD008  the nodes could never run it, or there are not enough
│   ├── LimitExceeded       OD009  the request exceeds a partition's or a server's limit
│   ├── BadDependency       OD011  malformed, on an unknown job, or impossible to meet
│   ├── WrongState          OD012  the job's state does not allow it (ended, not started, not held)
│   ├── NotOwner            OD013  only the job's owner or an operator may do that
│   ├── KeyReused           OD014  an idempotency key was used again with another request
│   ├── NotAuthenticated    OD015  over TCP: no API key, or it is unknown or has expired
│   ├── NotImplementedYet   OD016  an option of sbatch that odc does not implement yet
│   ├── TooLarge            OD017  a script, array, batch or body exceeds its limit
│   ├── UnknownBooking      OD018  no booking has that name
│   ├── BookingConflict     OD019  other bookings or jobs use the nodes, or the name is taken
│   ├── UnknownLicence      OD025  no licence has that name
│   ├── NotAllowed          OD026  the user may not use that account, QOS or partition
│   ├── UnknownUser         OD027  no such user, or not one of that account
│   ├── InUse               OD028  the name is taken, or jobs, users or other rows still need it
│   ├── UnknownPolicy       OD029  no policy has that name
│   ├── UnknownPass         OD030  no pass has that number, or it was deleted
│   ├── UnknownDisk         OD036  the user has no disk with that name
│   ├── DiskDeleted         OD037  the disk was deleted; its snapshots may still exist
│   ├── UnknownBuild        OD038  no build of that context, or it is another user's
│   ├── ClientTooOld        OD039  odcctl is older than the server accepts
│   ├── UnknownPath         OD045  the API has no such path
│   ├── MethodNotAllowed    OD046  the path does not accept this method; Allow lists those it does
│   ├── WrongOrigin         OD047  a form of the page was sent from another page
│   ├── SubmitRejected      OD048  the site's submit filter rejected the job
│   ├── FilterFailed        OD049  the site's submit filter failed, so nothing was submitted
│   ├── LoginRefused        OD033  the identity may not log in, or its proof was rejected
│   ├── TooManyLogins       OD034  too many logins from that address were refused recently
│   ├── TooManyRequests     OD041  the user has too many requests in progress; try again (429)
│   └── TooMuchStored       OD042  the user's submits added too much to the database recently (429)
└── Unavailable             not the caller's fault (503 unless noted); most pass by themselves
    ├── LeadershipLost      OD020  this daemon no longer leads: another does, or it gave up the lead
    ├── OtherHost           OD021  the local executor of this database is on another machine
    ├── SchemaTooNew        OD022  the database was written by a newer odc
    ├── DatabaseDown        OD023  PostgreSQL cannot be reached, or cannot write
    ├── DatabaseBusy        OD040  PostgreSQL did not finish in time, and changed nothing
    ├── DiskAlmostFull      OD043  the database's disk is almost full: new work is rejected (507)
    ├── DaemonBusy          OD044  the daemon has too many large requests in progress
    ├── RunnerDown          OD024  the executor's runner cannot be reached or started
    ├── KeysUnavailable     OD031  GitHub, the source of users' SSH keys, does not answer
    └── IdentityDown        OD035  the identity provider (AWS STS, GitHub) does not answer
"""

from __future__ import annotations

from typing import ClassVar

RECOUNT_S = 5  # at most this often, pending jobs of a user who reached the limit are counted
DRAIN_S = 60  # the daily allowance for database growth comes back evenly: a retry may then succeed


class OdcError(Exception):
    """An expected error: what happened (message), and what to do about it (hint)."""

    code: ClassVar[str] = "OD000"
    status: ClassVar[int] = 500

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def title(self) -> str:
        return type(self).__name__


class Refused(OdcError):
    status = 400


class Unavailable(OdcError):
    status = 503


class UnknownPartition(Refused):
    code, status = "OD001", 404


class UnknownAccount(Refused):
    code, status = "OD002", 404


class PlanStale(Refused):
    code, status = "OD003", 409


class UnknownQos(Refused):
    code, status = "OD004", 404


class UnknownGpuType(Refused):
    code, status = "OD005", 404


class UnknownJob(Refused):
    code, status = "OD006", 404


class UnknownNode(Refused):
    code, status = "OD007", 404


class NeverFits(Refused):
    code, status = "OD008", 422


class LimitExceeded(Refused):
    code, status = "OD009", 422


class BadRequest(Refused):
    code, status = "OD010", 400


class BadDependency(Refused):
    code, status = "OD011", 422


class WrongState(Refused):
    code, status = "OD012", 409


class NotOwner(Refused):
    code, status = "OD013", 403


class WrongOrigin(Refused):
    code, status = "OD047", 403


class KeyReused(Refused):
    code, status = "OD014", 409


class NotAuthenticated(Refused):
    code, status = "OD015", 401


class NotImplementedYet(Refused):
    code, status = "OD016", 501


class TooLarge(Refused):
    code, status = "OD017", 413


class UnknownBooking(Refused):
    code, status = "OD018", 404


class BookingConflict(Refused):
    code, status = "OD019", 409


class UnknownLicence(Refused):
    code, status = "OD025", 404


class NotAllowed(Refused):
    code, status = "OD026", 403


class UnknownUser(Refused):
    code, status = "OD027", 404


class InUse(Refused):
    code, status = "OD028", 409


class UnknownPolicy(Refused):
    code, status = "OD029", 404


class UnknownPass(Refused):
    code, status = "OD030", 404


class UnknownDisk(Refused):
    code, status = "OD036", 404


class DiskDeleted(Refused):
    code, status = "OD037", 410


class UnknownBuild(Refused):
    code, status = "OD038", 404


class ClientTooOld(Refused):
    code, status = "OD039", 426


class UnknownPath(Refused):
    code, status = "OD045", 404


class MethodNotAllowed(Refused):
    code, status = "OD046", 405


class SubmitRejected(Refused):
    """text: the filter's own words."""

    code, status = "OD048", 403

    def __init__(self, message: str, hint: str | None = None, *, text: str = "") -> None:
        super().__init__(message, hint)
        self.text = text or message


class FilterFailed(Refused):
    """Not Unavailable: clients would repeat a request on which the filter fails each time."""

    code, status = "OD049", 403


class LoginRefused(Refused):
    """reason: a word for the audit log."""

    code, status = "OD033", 403

    def __init__(self, message: str, hint: str | None = None, *, reason: str = "user") -> None:
        super().__init__(message, hint)
        self.reason = reason


class TooManyLogins(Refused):
    code, status = "OD034", 429


class TooManyRequests(Refused):
    """limit: its name in the metric odcd_requests_limited."""

    code, status = "OD041", 429

    def __init__(
        self, message: str, hint: str | None = None, *, limit: str = "statements",
        retry_after_s: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(message, hint)
        self.limit = limit
        self.retry_after_s = retry_after_s


class TooMuchStored(TooManyRequests):
    code = "OD042"


class LeadershipLost(Unavailable):
    code = "OD020"


class OtherHost(Unavailable):
    code, status = "OD021", 409


class SchemaTooNew(Unavailable):
    code = "OD022"


class DatabaseDown(Unavailable):
    code = "OD023"


class DatabaseBusy(Unavailable):
    code = "OD040"

    def __init__(self, message: str, hint: str | None = None, *, too_slow: bool = False) -> None:
        super().__init__(message, hint)
        self.too_slow = too_slow  # the statement itself: it did not only wait for a lock


class DiskAlmostFull(Unavailable):
    code, status = "OD043", 507


class DaemonBusy(Unavailable):
    code = "OD044"


class RunnerDown(Unavailable):
    code = "OD024"


class KeysUnavailable(Unavailable):
    code, status = "OD031", 502


class IdentityDown(Unavailable):
    code = "OD035"


def _below(root: type[OdcError]) -> list[type[OdcError]]:
    children = root.__subclasses__()
    return [*children, *(one for child in children for one in _below(child))]


BY_CODE = {one.code: one for one in _below(OdcError) if "code" in vars(one)}
"""The class of each OD code (= SQLSTATE), for odcd.database.pool and odcd.api.http.problems."""


def refusal(code: str, message: str, hint: str | None) -> OdcError:
    """The error for an OD code, as the database reports one per job of a batch."""
    if code == TooManyRequests.code:
        return TooManyRequests(message, hint, limit="pending", retry_after_s=RECOUNT_S)
    if code == TooMuchStored.code:
        return TooMuchStored(message, hint, limit="stored", retry_after_s=DRAIN_S)
    return BY_CODE.get(code, OdcError)(message, hint)
