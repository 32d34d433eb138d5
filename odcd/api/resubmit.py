"""Submit a job again that has ended."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from odcd.api.answers.submit import SubmittedJob
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.job_updates import Form
from odcd.api.slurm.allocations import HOLD
from odcd.api.submit import SubmitRoutes
from odcd.errors import WrongState
from odcd.jobs.resubmission import spec_of


class Resubmit(Form):
    hold: bool = False


class ResubmitRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._submits = SubmitRoutes(api)
        self._form = msgspec.json.Decoder(Resubmit)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/jobs/{id}/resubmit",
                tag="submit",
                serve=self.resubmit,
                body=Resubmit,
                makes=True,
                answers={201: (SubmittedJob,)},
                summary="Submit a job or an array that has ended again, as a new job",
            ),
        )

    async def resubmit(self, call: Call) -> Response:
        """It is checked as any other submit: limits and permissions may have changed."""
        form = await call.body(self._form, empty=b"{}")
        selector = call.selector()
        row = await self._api.store.jobs.get_ended_request(call.who, selector)
        if row["script"] == HOLD or row["options"].get("pty"):
            raise WrongState(
                f"job {row['id']} was interactive", "Start it again with the command that made it."
            )
        done = await self._submits.submit_specs(call, [spec_of(row, hold=form.hold)])
        answer = SubmittedJob(id=done.ids[0], warnings=list(done.warnings))
        return Response(msgspec.json.encode(answer), 201, media_type=JSON)
