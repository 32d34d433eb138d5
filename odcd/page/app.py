"""The page next to the API: its routes, and the choice between the two for each request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from time import perf_counter
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from odcd.api.answers.jobs import END_STATES
from odcd.api.app import identifier_of
from odcd.api.http.audited import WHO, Audited
from odcd.api.http.context import Api
from odcd.api.http.streaming import Streamed
from odcd.database.slots import ask_as
from odcd.errors import BadRequest, OdcError, TooManyRequests
from odcd.page.acts import Acts
from odcd.page.addresses import convert, live_path, query_of
from odcd.page.answering import (
    HEADERS,
    Counted,
    failed,
    html,
    packed,
    problem,
    seen_other,
    takes_gzip,
)
from odcd.page.files import PATH, assets, templates
from odcd.page.live import Live
from odcd.page.mine import mine_css
from odcd.page.queries import (
    PageOfAll,
    PageOfEnded,
    PageOfJob,
    PageOfMine,
    PageOfNodes,
    PageOfPlan,
    PageOfQueue,
    PageQuery,
)
from odcd.page.sessions import Sessions
from odcd.page.views import Views
from odcd.records.job import Identity

FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
RETRY = b"retry: 500\n\n"
BEAT = b"event: beat\ndata:\n\n"
"""An event rather than a comment, because the script can see it: without it the connection counts
as dead."""
STREAM_S = 300.0
"""A stream ends after this time, and its browser reconnects to any available daemon."""
EVENTS = "text/event-stream"
PAGES: dict[str, tuple[str, type[PageQuery]]] = {
    "/": ("overview.html", PageOfAll),
    "/page/queue": ("queue.html", PageOfQueue),
    "/page/nodes": ("nodes.html", PageOfNodes),
    "/page/plan": ("plan.html", PageOfPlan),
    "/page/ended": ("ended.html", PageOfEnded),
}
Serve = Callable[[Request, Identity], Awaitable[Response]]


class Page:
    """Answers browser requests at / and below /page, and passes on all others. run() must run
    too."""

    def __init__(self, api: Api, rest: ASGIApp) -> None:
        self._api = api
        self._rest = rest
        self._views = Views(api)
        self._audited = Audited(api.audit)
        self._sessions = Sessions(api, identifier_of(api))
        self._live = Live(api.events, api.clock, self._views.render, api.metrics.viewers)
        acts = Acts(api, self._views.job, self._sessions)
        routes = [
            *(self._route(path, self._page_of(path)) for path in PAGES),
            self._route("/page/jobs/{id}", self._job),
            self._route("/page/jobs/{id}/why", self._why),
            self._route("/page/jobs/{id}/logs", acts.logs),
            self._route("/page/mine.css", self._mine),
            self._route("/page/live", self._stream),
            self._route("/page/jobs/{id}/cancel", acts.cancel, "POST"),
            self._route("/page/jobs/{id}/extend", acts.extend, "POST"),
            self._open("/page/enter", acts.ask_in, "GET"),
            self._open("/page/enter", acts.enter, "POST"),
            self._open("/page/key", acts.enter_by_key, "POST"),
            self._open("/page/leave", acts.leave, "POST"),
            self._open("/page/theme", acts.theme, "POST"),
            self._open(PATH + "{name}", self._asset, "GET"),
        ]
        self._app = Starlette(routes=routes, exception_handlers={HTTPException: _of_http})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"]
            if path.startswith("/page/") or (path == "/" and _wants_html(scope)):
                return await self._app(scope, receive, send)
        await self._rest(scope, receive, send)

    async def run(self) -> None:
        """Keep open views current, until cancelled or the event hub closes."""
        async with asyncio.TaskGroup() as group:
            sessions = group.create_task(self._sessions.run(), name="page-sessions")
            await self._live.run()
            sessions.cancel()

    def _route(self, path: str, serve: Serve, method: str = "GET") -> Route:
        async def answer(request: Request) -> Response:
            async def work() -> Response:
                who = request.scope[WHO] = await self._sessions.who(request)
                self._api.fairness.request(who)
                self._api.fairness.answers.check(who)
                ask_as(who.user, path, operator=who.operator)
                response = await serve(request, who)
                if not isinstance(response, Streamed):
                    return Counted(response, who, self._api.fairness.answers)
                self._sessions.bind(response, request)
                return response

            return await self._served(request, method, path, work)

        return Route(path, answer, methods=[method])

    def _open(
        self, path: str, serve: Callable[[Request], Awaitable[Response]], method: str
    ) -> Route:
        """A route without a login."""

        async def answer(request: Request) -> Response:
            return await self._served(request, method, path, lambda: serve(request))

        return Route(path, answer, methods=[method])

    async def _served(
        self, request: Request, method: str, path: str, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Refusals and errors are shown as a page too, and every response is counted."""
        begun = perf_counter()
        try:
            response = await work()
        except HTTPException:
            raise
        except OdcError as error:
            if isinstance(error, TooManyRequests):
                self._api.metrics.limited(error.limit)
            response = problem(request, error, request.scope.get(WHO))
        except Exception as error:
            response = failed(request, error, request.scope.get(WHO))
        self._audited.answered(
            request.scope, path, request.scope.get(WHO), response, by="page session"
        )
        took_s = perf_counter() - begun
        self._api.metrics.answered(method, path, response.status_code, took_s)
        return response

    def _page_of(self, path: str) -> Serve:
        template, form = PAGES[path]

        async def serve(request: Request, who: Identity) -> Response:
            query = query_of(request, form)
            beside = _beside(query, who)
            rendered, mine = await asyncio.gather(
                self._live.current(query), self._live.current(beside) if beside else _nothing()
            )
            hues = self._views.hues
            return html(
                request, template, who=who, here=path, live=live_path(path, query), query=query,
                rendered=rendered, states=END_STATES, mine=mine, users=hues.users,
                partitions=hues.partitions,
            )  # fmt: skip

        return serve

    async def _job(self, request: Request, who: Identity) -> Response:
        query = query_of(request, PageOfJob, id=request.path_params["id"])
        job, several = await self._views.job.find(query.id)
        rendered = await self._live.current(query)
        ended = not await self._views.job.live(query.id) if several else job["ended_at"] is not None
        return html(
            request, "array.html" if several else "job.html", who=who, here="", query=query,
            live=live_path("/page/jobs", query), rendered=rendered, job=job,
            own=who.operator or who.uid == job["uid"], ended=ended, whole=query.id.isdecimal(),
            notice=NOTICES.get(request.query_params.get("done", "")),
        )  # fmt: skip

    async def _why(self, request: Request, _: Identity) -> Response:
        text = await self._views.job.why(request.path_params["id"])
        return packed(request, text.encode(), "text/html; charset=utf-8")

    async def _mine(self, request: Request, who: Identity) -> Response:
        """CSS that marks the user's own jobs in views that are the same for everyone."""
        css = packed(request, mine_css(who.user).encode(), "text/css; charset=utf-8")
        if request.query_params.get("user") == who.user:
            css.headers["cache-control"] = "private, max-age=3600"
        return css

    async def _stream(self, request: Request, who: Identity) -> Response:
        given = dict(request.query_params)
        path = given.pop("of", "")
        form = PageOfJob if path == "/page/jobs" else PAGES.get(path, ("", None))[1]
        if form is None:
            raise BadRequest("this view does not exist", "Load the page again.")
        seen = request.headers.get("last-event-id") or given.pop("seen", None)
        given.pop("seen", None)
        query = convert(given, form)
        self._live.check_room(query, who.uid)  # refuse before the stream starts
        await self._live.current(query)
        return Streamed(
            self._updates(query, seen, who), media_type=EVENTS,
            stopping=self._api.events.closing,
            headers={k: v for k, v in HEADERS.items() if k != "cache-control"},
        )  # fmt: skip

    async def _updates(
        self, query: PageQuery, seen: str | None, who: Identity
    ) -> AsyncGenerator[bytes]:
        async with self._live.watch(query, seen, who.uid, _beside(query, who)) as viewer:
            yield RETRY
            until_s = self._api.clock.monotonic() + STREAM_S
            while self._api.clock.monotonic() < until_s:
                update = await viewer.take()
                yield BEAT if update is None else update.event

    async def _asset(self, request: Request) -> Response:
        asset = next((a for a in assets().values() if a.url == request.url.path), None)
        if asset is None:
            raise HTTPException(404)
        headers = {**HEADERS, **FOREVER, "vary": "accept-encoding"}
        if takes_gzip(request):
            headers["content-encoding"] = "gzip"
        body = asset.packed if takes_gzip(request) else asset.plain
        return Response(body, 200, headers, asset.media_type)


NOTICES = {
    "cancelled": "The job was cancelled, or is being cancelled.",
    "extended": "The job was extended.",
}


def load() -> None:
    """Read templates and assets while the package is readable."""
    templates()
    assets()


def _beside(query: PageQuery, who: Identity) -> PageOfMine | None:
    """The viewer's own jobs, beside the overview."""
    return PageOfMine(user=who.user) if isinstance(query, PageOfAll) else None


async def _nothing() -> None:
    return None


def _wants_html(scope: Scope) -> bool:
    accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return b"text/html" in accept and scope["method"] in ("GET", "HEAD")


def _page_with(path: str) -> str:
    """The page with the form that posts to this path. A user who reloads the response, or returns
    to it from the theme button, is sent there."""
    job, _, act = path.rpartition("/")
    return job if act in ("cancel", "extend") else "/"


async def _of_http(request: Any, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405 and request.method in ("GET", "HEAD"):
        return seen_other(_page_with(request.url.path))
    title = "Page not found" if error.status_code == 404 else "Not allowed at this address"
    return html(
        request, "problem.html", error.status_code, title=title, code="OD010",
        message="there is no page or action at this address.", hint=None,
    )  # fmt: skip
