"""A site's history as a file: JSON, compressed if the name ends in .gz."""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
import zlib
from pathlib import Path

import msgspec

from odcd.errors import BadRequest, OdcError
from odcd.simulate.site.records import FORMAT, Site
from odcd.simulate.site.tables import TABLES
from odcd.simulate.trace import open_trace

SUFFIXES = (".json", ".json.gz")


def check_name(path: Path) -> None:
    """Raises BadRequest for a name that is not one of a site's history."""
    if not path.name.endswith(SUFFIXES):
        raise BadRequest(f"{path} is not the name of a trace", "End it in .json or .json.gz.")
    if not path.absolute().parent.is_dir():
        raise BadRequest(f"{path}: the folder does not exist", "Create it first.")


def is_site(path: Path) -> bool:
    """Whether a file has a site's history; SWF and CSV never begin with a brace."""
    try:
        with open_trace(path) as file:
            return file.read(1) == b"{"
    except (OSError, EOFError, zlib.error):
        return False


def write_site(path: Path, site: Site) -> None:
    """Write the file, or none. The same site always gives the same bytes."""
    check_name(path)
    data = msgspec.json.encode(site, order="deterministic")
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    scratch = path.with_name(f"{path.name}.{secrets.token_hex(8)}.partial")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(scratch, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.rename(path)
    except OSError as error:
        raise OdcError(
            f"{path} cannot be written: {error.strerror}", "Choose another file."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)


def read_site_file(path: Path) -> Site:
    """Raises BadRequest for a file that is damaged or of a newer format."""
    try:
        with open_trace(path) as file:
            data = file.read()
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        if found.get("format") != msgspec.Raw(str(FORMAT).encode()):
            raise BadRequest(
                f"{path} has an unknown format", "Read it with the version of odc that wrote it."
            )
        site = msgspec.json.decode(data, type=Site)
        if missing := TABLES.keys() - site.tables.keys():
            raise BadRequest(f"{path} has no {', '.join(sorted(missing))}", "Export it again.")
        return site
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise BadRequest(f"{path} is not a site's history: {error}", "Export it again.") from error
