"""/v1/slurm/{command}: run a command of Slurm for the program that odcctl.remote links."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from starlette.responses import Response

from odcd.api.http.audited import READS_ONLY
from odcd.api.http.context import Api
from odcd.api.http.routing import Call, Operation
from odcd.api.http.streaming import Begun, Streamed
from odcd.api.slurm.remote import Finished, Frames, NeedFile, Remote, RemoteCall, frame
from odcd.api.slurm.table import COMMANDS
from odcd.errors import BadRequest, OdcError, Unavailable
from odcd.slurm.usage import Usage

MEDIA_TYPE = "application/octet-stream"
MAX_CHARS = 256 * 1024
"""Of the words and variables of commands that submit nothing: twice as many as xargs gives one."""


class SlurmRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._body = msgspec.json.Decoder(RemoteCall)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/slurm/{command}",
                tag="slurm",
                serve=self.run,
                body=RemoteCall,
                makes=True,
                media_type=MEDIA_TYPE,
                summary="Run a command of Slurm; the answer is a sequence of frames",
            ),
        )

    async def run(self, call: Call) -> Response:
        name = call.part("command")
        command = COMMANDS.get(name)
        if command is None:
            raise BadRequest(
                f'"{name[:60]}" is not a command of Slurm that odc has',
                f"Commands: {', '.join(COMMANDS)}.",
            )
        if command.reads_only:
            call.request.scope[READS_ONLY] = True
        request = await call.body(self._body)
        if any("\0" in text for text in (*request.argv, *request.environment.values())):
            raise BadRequest("an argument or a variable contains a NUL byte", "Leave it out.")
        remote = Remote(name=name, request=request, call=call, api=self._api)
        try:
            answer = await answer_of(remote)
        except NeedFile as needed:
            return Response(frame(b"f", needed.path.encode()), media_type=MEDIA_TYPE)
        if isinstance(answer, Finished):
            return Response(answer.frames(), media_type=MEDIA_TYPE)
        begun = await Begun(answer).begin()
        return Streamed(begun, media_type=MEDIA_TYPE, stopping=self._api.events.closing)


async def answer_of(remote: Remote) -> Finished | Frames:
    """Run one of COMMANDS. Raises NeedFile, Unavailable."""
    name, request = remote.name, remote.request
    words = (*request.argv, *request.environment.values())
    if not COMMANDS[name].submits and sum(map(len, words)) > MAX_CHARS:
        return Finished(err=f"{name}: error: more than {MAX_CHARS} characters\n", code=1)
    try:
        async with remote.api.large_lists.place(remote.who.uid) as place:
            return await COMMANDS[name].run(replace(remote, place=place))
    except Usage as usage:
        return Finished(err=usage.text, out=usage.out, code=usage.code)
    except Unavailable:
        raise
    except OdcError as error:
        return Finished(err=explained(name, error), code=1)


def explained(name: str, error: OdcError) -> str:
    """An error of odc that has no words of Slurm's."""
    hint = f"\n{name}: error:   {error.hint}" if error.hint else ""
    return f"{name}: error: {error.message}{hint}\n"
