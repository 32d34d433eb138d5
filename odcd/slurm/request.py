"""The body of a request to submit a command line."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from odcd.slurm.sync_script import Sync


class SubmitArgv(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/submit-argv. argv: the words after the verb. script: the text of the
    file that argv names (script_path), sent when the answer was ScriptNeeded. command sbatch: argv
    is that of sbatch, which accepts more options that have no effect here. sync: the command of run
    starts in a copy of the user's folder, which the client then sends."""

    command: Literal["submit", "run", "sbatch"] = "submit"
    argv: list[str]
    work_dir: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
    environment: dict[str, str] = {}
    umask: Annotated[int, msgspec.Meta(ge=0, le=0o777)] = 0o022
    script: str | None = None
    script_path: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    submit_host: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    stdin_is_tty: bool = False
    sync: Sync | None = None
