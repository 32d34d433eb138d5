"""Actions of the page: login and logout, a job's output, cancel and extend.

Jobs are changed by the API's own operations, so the same rules apply.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from odcd.api.changes import ChangeRoutes
from odcd.api.http.audited import WHO
from odcd.api.http.context import Api
from odcd.api.http.routing import Call
from odcd.api.http.streaming import Streamed
from odcd.api.logs import LogRoutes
from odcd.api.reservations import ReservationRoutes
from odcd.errors import BadRequest, NotAuthenticated, NotOwner, Unavailable, WrongState
from odcd.page.answering import HEADERS, THEME, THEMES, html, seen_other
from odcd.page.job import JobPage
from odcd.page.sessions import Entered, Sessions, check_origin, drop_cookie, set_cookie
from odcd.page.tail import tail
from odcd.records.job import Identity

MAX_FORM = 8192
TEXT = "text/plain; charset=utf-8"
YEAR_S = 365 * 86_400


class Acts:
    def __init__(self, api: Api, jobs: JobPage, sessions: Sessions) -> None:
        self._api = api
        self._jobs = jobs
        self._sessions = sessions
        self._logs = LogRoutes(api)
        self._changes = ChangeRoutes(api)
        self._reservations = ReservationRoutes(api)

    async def ask_in(self, request: Request) -> Response:
        """The address printed by odcctl page: it shows which user it logs in, to everyone who opens
        it. It does not use up the ticket, so link previews do no harm."""
        ticket = request.query_params.get("ticket", "")
        guest = await self._sessions.guest(request, ticket)
        if guest is None:  # the address was opened again, or with the back button
            return seen_other("/")
        return html(request, "enter_as.html", guest=guest, ticket=ticket)

    async def enter(self, request: Request) -> Response:
        check_origin(request)
        form = await _form(request)
        entered = await self._sessions.enter(request, form.get("ticket", ""))
        return self._entered(request, entered)

    async def enter_by_key(self, request: Request) -> Response:
        check_origin(request)
        form = await _form(request)
        key = form.get("key", "")
        return self._entered(request, await self._sessions.enter_by_key(request, key))

    def _entered(self, request: Request, entered: Entered) -> Response:
        """The page that follows has neither ticket nor key in its address."""
        request.scope[WHO] = entered.who
        response = seen_other("/")
        set_cookie(response, request, entered)
        return response

    async def leave(self, request: Request) -> Response:
        check_origin(request)
        with suppress(NotAuthenticated):
            await self._sessions.leave(request)
        response = seen_other("/")
        drop_cookie(response, request)
        return response

    async def theme(self, request: Request) -> Response:
        """Switch from the system's theme to light, then between dark and light."""
        check_origin(request)
        now = request.cookies.get(THEME)
        response = seen_other(_path_of(request.headers.get("referer", "")))
        name = THEMES[1] if now == THEMES[0] else THEMES[0]
        response.set_cookie(THEME, name, max_age=YEAR_S, path="/", samesite="lax")
        return response

    async def logs(self, request: Request, who: Identity) -> Response:
        """The output as text, streamed with follow=true. Only for the owner and operators. If there
        is none yet, the text says so; if it cannot be read now, the text says what to do."""
        try:
            response = await self._logs.logs(Call(request, who))
        except WrongState as error:
            return Response(f"({error.message})\n", 200, HEADERS, TEXT)
        except Unavailable as error:
            text = " ".join([f"{error.message}.", *([error.hint] if error.hint else [])])
            return Response(f"({text})\n", error.status, HEADERS, TEXT)
        response.headers.update(HEADERS | {"content-type": TEXT})
        if isinstance(response, Streamed) and "follow" in request.query_params:
            response.through(tail)
        return response

    async def cancel(self, request: Request, who: Identity) -> Response:
        check_origin(request)
        form = await _form(request)
        if form.get("sure") != "yes":
            raise BadRequest("the cancellation was not confirmed", "Use the page's button.")
        await self._own(request, who)
        response = await self._changes.cancel_one(_call(request, who, {}))
        _raise_refusal(json.loads(bytes(response.body)))
        return seen_other(f"/page/jobs/{request.path_params['id']}?done=cancelled")

    async def extend(self, request: Request, who: Identity) -> Response:
        """Show the effect first; extend when confirmed."""
        check_origin(request)
        form = await _form(request)
        try:
            hours = float(form.get("hours", ""))
        except ValueError:
            raise BadRequest("that is not a number of hours", "For example 1.5.") from None
        job = await self._own(request, who)
        sure, job_id = form.get("sure") == "yes", request.path_params["id"]
        if job["kind"] == "reservation":
            call = _call(request, who, {"hours": hours, "dry_run": not sure})
            reservation = json.loads(bytes((await self._reservations.extend(call)).body))
            until, delays = reservation["expires_at"], reservation["delays"]
        else:
            until, delays = None, []
            if job["time_limit_s"] is None:
                raise BadRequest("the job has no time limit", "There is nothing to extend.")
            if not 0 < hours <= 24 * 366:
                raise BadRequest("the number of hours is out of range", "For example 1.5.")
            if sure:
                more = {"time_limit_s": job["time_limit_s"] + int(hours * 3600)}
                answer = await self._changes.update(_call(request, who, more))
                _raise_refusal(json.loads(bytes(answer.body)))
        if sure:
            return seen_other(f"/page/jobs/{job_id}?done=extended")
        return html(
            request, "extend.html", who=who, job=job, job_id=job_id, hours=f"{hours:g}",
            until=until, delays=delays,
        )  # fmt: skip

    async def _own(self, request: Request, who: Identity) -> dict[str, Any]:
        """Raises UnknownJob, NotOwner."""
        job, _ = await self._jobs.find(request.path_params["id"])
        if not who.operator and job["uid"] != who.uid:
            raise NotOwner(
                f"job {job['id']} belongs to {job['user']}",
                "Only its owner and operators may do that.",
            )
        return job


def _call(request: Request, who: Identity, body: dict[str, Any]) -> Call:
    """A call of the API for the same path, with this body."""
    data = msgspec.json.encode(body)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    return Call(Request({**request.scope, "headers": headers}, receive), who)


async def _form(request: Request) -> dict[str, str]:
    body = await Call(request, None).raw(MAX_FORM)
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=10)
    except (ValueError, UnicodeDecodeError):
        raise BadRequest("that is not a form of this page", "Use the page's own buttons.") from None
    return {name: values[-1] for name, values in fields.items()}


def _raise_refusal(answer: dict[str, Any]) -> None:
    """Raises the error if the change was refused."""
    for outcome in answer["jobs"]:
        if outcome["code"]:
            raise BadRequest(
                f"job {outcome['job_id']}: {outcome['message']}", outcome["hint"] or ""
            )


def _path_of(referer: str) -> str:
    """The path of the page where the form was submitted, on this server."""
    try:
        parts = urlsplit(referer)
    except ValueError:
        return "/"
    if not parts.path.startswith("/") or parts.path.startswith("//"):
        return "/"
    return parts.path + (f"?{parts.query}" if parts.query else "")
