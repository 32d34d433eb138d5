"""The rules for the text of a batch script."""

from __future__ import annotations

from odcd.errors import BadRequest, TooLarge
from odcd.records.job import MAX_SCRIPT_BYTES

COMMAND_SCRIPT = '#!/bin/sh\nexec "$@"\n'
"""The script of a job that runs a command with arguments."""


def wrapped_script(command: str) -> str:
    return f"#!/bin/sh\n# This script was created by --wrap.\n\n{command}\n"


def check_script(script: str) -> None:
    """Raise BadRequest or TooLarge when the text cannot be a batch script."""
    if len(script) * 4 > MAX_SCRIPT_BYTES and (size := _bytes(script)) > MAX_SCRIPT_BYTES:
        raise TooLarge(
            f"the script has {size} bytes, more than {MAX_SCRIPT_BYTES}",
            "Keep data in files that the script reads.",
        )
    if not script:
        raise BadRequest(
            "the script is empty", 'Its first line is #! and an interpreter, as in "#!/bin/sh".'
        )
    end = script.find("\n")
    first = script if end < 0 else script[:end]
    if not first.startswith("#!") or not first[2:].strip():
        raise BadRequest(
            'the script is not a batch script: its first line must start with "#!" '
            "followed by the path to an interpreter",
            "For instance: #!/bin/sh",
        )
    if "\0" in script:
        raise BadRequest(
            "the script contains a NUL byte",
            "A script is text; run a program with --wrap or after --.",
        )
    if "\r\n" in script:
        raise BadRequest(
            "the script has DOS line breaks (\\r\\n) instead of UNIX ones (\\n)",
            "Convert it, for instance with dos2unix.",
        )


def _bytes(script: str) -> int:
    return len(script.encode(errors="surrogatepass"))
