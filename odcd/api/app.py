"""Assemble the API: the operations of every resource, one endpoint per operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from odcd.api.accounts import AccountRoutes, QosRoutes
from odcd.api.attach import AttachEndpoint
from odcd.api.availability import AvailabilityRoutes
from odcd.api.bookings import BookingRoutes
from odcd.api.builds import BuildRoutes
from odcd.api.changes import ChangeRoutes
from odcd.api.cluster import ClusterRoutes
from odcd.api.cron import CronRoutes
from odcd.api.disk_imports import DiskImportRoutes
from odcd.api.disks import DiskRoutes
from odcd.api.events import EventRoutes
from odcd.api.http.audited import Audited
from odcd.api.http.context import Api
from odcd.api.http.identity import Identifier
from odcd.api.http.openapi import OpenApiRoutes
from odcd.api.http.problems import not_served
from odcd.api.http.routing import Endpoint, Operation
from odcd.api.http.sockets import CountedSocket
from odcd.api.idle import IdleRoutes
from odcd.api.jobs import JobRoutes
from odcd.api.licences import LicenceRoutes
from odcd.api.login import LoginRoutes
from odcd.api.logs import LogRoutes
from odcd.api.me import MeRoutes
from odcd.api.nodes import NodeRoutes
from odcd.api.notify import NotifyRoutes
from odcd.api.page import PageRoutes
from odcd.api.partitions import PartitionRoutes, PolicyRoutes
from odcd.api.plan import PlanRoutes
from odcd.api.priority import PriorityRoutes
from odcd.api.reservations import ReservationRoutes
from odcd.api.resubmit import ResubmitRoutes
from odcd.api.slurm.routes import SlurmRoutes
from odcd.api.slurm.step_input import StepInputRoutes
from odcd.api.submit import SubmitRoutes
from odcd.api.tunnel import PORTS, TunnelEndpoint
from odcd.api.usage import UsageRoutes
from odcd.api.users import UserRoutes


def create_app(deps: Api) -> Starlette:
    """The ASGI application. Serve it with odcd.api.http.server, which knows the peer's uid."""
    identifier, audited = identifier_of(deps), Audited(deps.audit)
    endpoints = {
        (o.method, o.path): Endpoint(
            o, identifier, deps.metrics, deps.fairness, deps.credentials, audited
        )
        for o in operations(deps)
    }
    routes: list[BaseRoute] = [
        Route(path, endpoint, methods=[method]) for (method, path), endpoint in endpoints.items()
    ]
    sockets: dict[str, ASGIApp] = {"/v1/jobs/{id}/attach": AttachEndpoint(deps, identifier)}
    for way in PORTS:
        sockets[f"/v1/reservations/{{id}}/{way}"] = TunnelEndpoint(deps, identifier, way)
    routes += [
        WebSocketRoute(path, CountedSocket(endpoint, path, deps.metrics, audited))
        for path, endpoint in sockets.items()
    ]
    return _App(endpoints, routes)


def identifier_of(deps: Api) -> Identifier:
    return Identifier(
        deps.store.keys,
        deps.store.users,
        deps.clock,
        own_uid=deps.own_uid,
        operators=deps.operators,
        serves_uid=deps.serves_uid,
        oldest_client=deps.oldest_client,
    )


class _App(Starlette):
    """Starlette, with a shortcut: a request whose method and path match an endpoint literally
    skips the router and its middlewares. Those cost a third of a submit's time in the daemon."""

    def __init__(
        self, endpoints: Mapping[tuple[str, str], ASGIApp], routes: Sequence[BaseRoute]
    ) -> None:
        super().__init__(routes=routes, exception_handlers={HTTPException: self._not_served})
        self._endpoints = {key: found for key, found in endpoints.items() if "{" not in key[1]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            endpoint = self._endpoints.get((scope["method"], scope["path"]))
            if endpoint is not None:
                return await endpoint(scope, receive, send)
        await super().__call__(scope, receive, send)

    async def _not_served(self, request: Request, _: Exception) -> Response:
        """The router's only errors are unknown paths and methods. A path has one route per method:
        Allow names them all."""
        path, method = request.scope["path"], request.method
        accepted = {
            name
            for route in self.routes
            if isinstance(route, Route) and route.path_regex.match(path)
            for name in route.methods or ()
        }
        return not_served(method, path, sorted(accepted))


def operations(deps: Api) -> list[Operation]:
    """Every operation, the most frequently used first, because routes are tried in order."""
    found: list[Operation] = []
    for resource in (
        SubmitRoutes,
        ResubmitRoutes,
        SlurmRoutes,
        StepInputRoutes,
        JobRoutes,
        ChangeRoutes,
        LogRoutes,
        EventRoutes,
        NodeRoutes,
        PlanRoutes,
        BookingRoutes,
        CronRoutes,
        ReservationRoutes,
        AvailabilityRoutes,
        DiskRoutes,
        DiskImportRoutes,
        BuildRoutes,
        LicenceRoutes,
        PartitionRoutes,
        PolicyRoutes,
        AccountRoutes,
        QosRoutes,
        # Before users: /v1/users/me is not a user.
        LoginRoutes,
        NotifyRoutes,
        UserRoutes,
        MeRoutes,
        PageRoutes,
        PriorityRoutes,
        UsageRoutes,
        IdleRoutes,
        ClusterRoutes,
    ):
        found += resource(deps).operations()
    return [*found, *OpenApiRoutes(found).operations()]
