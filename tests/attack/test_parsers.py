"""For any input of a user, a parser returns a value or raises its declared error, and never takes
long.

Runs for seconds in the everyday run, longer in the long one; `make test-soak` sets ODC_FUZZ_S.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from starlette.requests import Request

from odcd.api.events import EventsQuery
from odcd.api.events import _after as event_after  # pyright: ignore[reportPrivateUsage]
from odcd.api.http.clients import check_client
from odcd.api.http.identity import key_of
from odcd.api.http.routing import Call
from odcd.builds.context import read_context
from odcd.errors import BadRequest, NotImplementedYet, OdcError
from odcd.executor.declared_nodes import parse_nodes
from odcd.jobs.submission import prepare
from odcd.login.presigned import check_presigned
from odcd.page.sessions import (
    _cookie as cookie_of,  # pyright: ignore[reportPrivateUsage]
)
from odcd.page.sessions import (
    _is_https as is_https,  # pyright: ignore[reportPrivateUsage]
)
from odcd.page.sessions import check_origin
from odcd.records.job import Identity, JobSpec
from odcd.settings import parse_address
from odcd.simulate import gpu_csv, swf
from odcd.slurm import dependencies, directives, environment, gangs, gres, lists, signals, sizes
from odcd.slurm.crontab import CronOrigin, parse_crontab
from odcd.slurm.hostlists import compress_hosts, expand_hosts
from odcd.slurm.parse import parse_submit
from odcd.slurm.request import SubmitArgv
from odcd.slurm.sbatch_options import OPTIONS
from odcd.slurm.script import check_script
from odcd.slurm.times import parse_duration, parse_moment, parse_span, zone_of

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
EVE = Identity(user="eve", uid=64001, gid=64001, operator=False)
CRON = CronOrigin(zone="Europe/Berlin", work_dir="/home/eve", umask=0o22)
EVERYDAY = 25
LONG_S = float(os.environ.get("ODC_FUZZ_S", "20"))
SLOW_CPU_S = 5.0
LARGE = 50_000
"""Characters: what takes quadratic time takes more than SLOW_CPU_S for so many."""

PIECES = (
    "0", "1", "7", "9", "99999999999", "007", "-", "--", ":", "::", ",", ".", "/", "_", "%", "[",
    "]", "(", ")", "=", "+", "@", "*", "?", "&", "|", "!", "\\", '"', "'", "`", "$", "#", "\n",
    "\r\n", "\t", " ", "\0", "a", "gpu", "h100", "n", "after", "afterok", "singleton", "expand",
    "now", "tomorrow", "fika", "am", "pm", "T", "Z", "+23:59", "-23:59", "0001-01-01",
    "9999-12-31", "12/31/99", "23:59:59", "UNLIMITED", "K", "M", "G", "T", "inf", "nan", "1e309",
    "ALL", "NONE", "NIL", "USR1", "B:", "R:", "@60", "#!/bin/sh", "#SBATCH ", "#ODC ", "é",
    "\N{FULLWIDTH DIGIT ONE}", "\N{SUPERSCRIPT TWO}", "\u2028", "\ud800", "\x1b[2J", "\x85",
    "odc-page=", ";", "Bearer ", "https", "\xa0",
)  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.text(max_size=60),
)


def request_of(headers: dict[str, str]) -> Request:
    raw = [
        (name.encode(), value.encode("utf-8", "surrogatepass")) for name, value in headers.items()
    ]
    scope = {
        "type": "http", "method": "GET", "scheme": "http", "path": "/", "query_string": b"",
        "headers": raw, "server": ("odc", 80), "path_params": {"id": headers["x-id"]},
    }  # fmt: skip
    return Request(scope)


def read_headers(text: str) -> None:
    names = (
        "authorization", "cookie", "host", "origin", "sec-fetch-site", "x-forwarded-proto",
        "last-event-id", "idempotency-key", "user-agent", "content-length", "x-id",
    )  # fmt: skip
    request = request_of(dict.fromkeys(names, text))
    key_of(request.scope)
    cookie_of(request)
    is_https(request)
    for parse in (
        lambda: check_origin(request), lambda: check_client(request.scope, (1, 0)),
        lambda: event_after(Call(request, EVE), EventsQuery()),
        lambda: Call(request, EVE).part("id"), lambda: Call(request, EVE).selector(),
    ):  # fmt: skip
        allowed(parse)


def read_job(text: str) -> None:
    for fields in ({"array": text}, {"dependency": text}, {"name": text or None}, {"args": [text]}):
        allowed(
            lambda given=fields: prepare(
                EVE,
                [JobSpec(script=f"#!/bin/sh\n{text}", work_dir=f"/{text}", **cast("Any", given))],
                key=text, dry_run=False,
            )
        )  # fmt: skip
    allowed(
        lambda: prepare(
            EVE, [JobSpec(script="#!/bin/sh\n", work_dir="/", environment={text: text})],
            key=None, dry_run=False,
        )
    )  # fmt: skip


def read_submit(argv: list[str], script: str) -> None:
    for more in ({}, {"script": script, "script_path": "x.sh"}):
        variables = {"TZ": script[:40], "SBATCH_TIMELIMIT": script, "PATH": "/bin"}
        form = SubmitArgv(argv=argv, work_dir="/tmp", environment=variables, **cast("Any", more))
        parsed = allowed(lambda given=form: parse_submit(given, NOW))
        if parsed is not None:
            allowed(lambda spec=parsed.spec: prepare(EVE, [spec], key=None, dry_run=False))


def allowed(parse: Callable[[], Any]) -> Any:
    """The value, or None where the declared error was raised."""
    try:
        return parse()
    except OdcError as error:
        refusal = error
    assert refusal.status < 500 or isinstance(refusal, NotImplementedYet)
    assert refusal.message
    return None


PARSERS: dict[str, Callable[[str], Any]] = {
    "hosts": lambda text: compress_hosts(expand_hosts(text)),
    "array": lists.parse_array,
    "selector": lists.parse_selector,
    "selectors": lists.split_selectors,
    "dependency": dependencies.parse_dependency,
    "gres": gres.parse_gres,
    "gpus": gres.parse_gpus,
    "size": sizes.parse_mib,
    "signal": signals.signal_number,
    "end signal": signals.parse_end_signal,
    "directives": lambda text: directives.parse_directives(f"#!/bin/sh\n#SBATCH {text}\n{text}"),
    "late": directives.late_directive,
    "words": directives.split_words,
    "export": environment.parse_export,
    "nodes": gangs.parse_nodes,
    "switches": gangs.parse_switches,
    "duration": parse_duration,
    "span": lambda text: parse_span(text, "it"),
    "moment": lambda text: parse_moment(text, NOW),
    "local moment": lambda text: parse_moment(text, NOW.astimezone(zone_of("Asia/Kathmandu"))),
    "zone": lambda text: NOW.astimezone(zone_of(text)),
    "script": check_script,
    "crontab": lambda text: parse_crontab(
        f"#SCRON {text}\n{text}\n{text} {text} * * * x\n@daily {text}\n", CRON, NOW
    ),
    "declared nodes": lambda text: parse_nodes([f"n={text}", text]),
    "address": parse_address,
    "headers": read_headers,
    "job": read_job,
    "argv": lambda text: read_submit([text, f"--{text}", f"-{text}"], text),
    "option": lambda text: read_submit([f"--{name}={text}" for name in NAMES[:1]], text),
}
NAMES = [option.long for option in OPTIONS]


def in_time(parse: Callable[[], Any]) -> None:
    begun_s = time.process_time()
    allowed(parse)
    took_s = time.process_time() - begun_s
    assert took_s < SLOW_CPU_S, f"{took_s:.1f} s of CPU time"


def hunt(check: Callable[..., None], *drawn: st.SearchStrategy[Any], for_s: float) -> None:
    """Draw examples: a few that are always the same; or random ones for this long."""
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run = settings(max_examples=EVERYDAY, suppress_health_check=quiet)(given(*drawn)(check))
    if not for_s:
        run()
        return
    run = settings(max_examples=300, suppress_health_check=quiet, derandomize=False)(
        given(*drawn)(check)
    )
    until, number = time.monotonic() + for_s, 0
    while number == 0 or time.monotonic() < until:
        seed(number)(run)()
        number += 1


def fuzz_texts(name: str, for_s: float) -> None:
    hunt(lambda text: in_time(lambda: PARSERS[name](text)), texts, for_s=for_s)


@pytest.mark.parametrize("name", PARSERS)
def test_a_text_is_parsed_or_refused(name: str) -> None:
    fuzz_texts(name, 0)


@pytest.mark.parametrize("name", PARSERS)
def test_no_long_text_takes_long(name: str) -> None:
    for piece in PIECES:
        text = piece * (LARGE // len(piece))
        in_time(lambda given=text: PARSERS[name](given))


def fuzz_options(for_s: float) -> None:
    options = st.tuples(st.sampled_from(NAMES), texts).map(lambda one: f"--{one[0]}={one[1]}")
    argvs = st.lists(st.one_of(options, texts), max_size=5)
    hunt(
        lambda given, script: in_time(lambda: read_submit(given, script)), argvs, texts,
        for_s=for_s,
    )  # fmt: skip


def test_a_command_line_is_parsed_or_refused() -> None:
    fuzz_options(0)


AUTHORITY = "sts.us-east-1.amazonaws.com"
URL = {
    "Action": "GetCallerIdentity", "Version": "2011-06-15",
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": "AKIAIOSFODNN7EXAMPLE/20260701/us-east-1/sts/aws4_request",
    "X-Amz-Date": "20260701T120000Z", "X-Amz-Expires": "900",
    "X-Amz-SignedHeaders": "host;x-odc-server-id", "X-Amz-Signature": "0" * 64,
}  # fmt: skip


def fuzz_presigned(for_s: float) -> None:
    edges = ("00010101T000000Z", "99991231T235959Z", "20260230T000000Z", "00000", "99999", "%00")
    values = st.one_of(st.sampled_from(edges), texts)
    changes = st.dictionaries(st.sampled_from([*URL, "X-Amz-Security-Token", "x"]), values)

    def check(changed: dict[str, str], tail: str, header: str) -> None:
        query = "&".join(f"{name}={value}" for name, value in {**URL, **changed}.items())
        url = f"https://{AUTHORITY}/?{query}{tail}"
        in_time(
            lambda: check_presigned(
                url, {"x-odc-server-id": header}, "GET", authority=AUTHORITY, server_id="odc",
                now=NOW,
            )
        )  # fmt: skip

    hunt(check, changes, st.one_of(st.just(""), texts), st.one_of(st.just("odc"), texts),
         for_s=for_s)  # fmt: skip


def test_a_presigned_url_is_taken_or_refused() -> None:
    fuzz_presigned(0)


def fuzz_traces(folder: Path, for_s: float) -> None:
    fields = st.one_of(st.integers(-(10**30), 10**30).map(str), texts)
    line = st.lists(fields, min_size=1, max_size=19)
    head = st.sampled_from(["", "name,submit_s,duration_s,gpus\n", "submit_s,gpus,duration_s,vc\n"])

    def check(first: str, rows: list[list[str]], comma: bool, raw: bytes, packed: bool) -> None:
        separator = "," if comma else " "
        text = first + "\n".join(separator.join(row) for row in rows)
        content = text.encode("utf-8", "surrogatepass") + raw
        path = folder / ("trace.gz" if packed else "trace")
        path.write_bytes(gzip.compress(content)[: -len(raw) or None] + raw if packed else content)
        for reader in (swf.read, gpu_csv.read):
            in_time(lambda read=reader: list(read(path)))

    hunt(
        check, head, st.lists(line, max_size=5), st.booleans(), st.binary(max_size=30),
        st.booleans(), for_s=for_s,
    )  # fmt: skip


def test_a_trace_is_read_or_refused(tmp_path: Path) -> None:
    fuzz_traces(tmp_path, 0)


def fuzz_contexts(for_s: float) -> None:
    kinds = st.sampled_from([b"0", b"\0", b"1", b"2", b"3", b"5", b"6", b"7", b"x", b"g", b"L",
                             b"K", b"S", b"X", b"\xff"])  # fmt: skip
    pax = st.sampled_from([
        b"30 mtime=1\n", b"11 size=-1\n", b"13 size=1e30\n", b"20 hdrcharset=x\n", b"9 path=/\n",
        b"0 a=b\n", b"-5 a=b\n", b"23 GNU.sparse.size=999\n", b"22 GNU.sparse.map=1,1\n",
        b"22 GNU.sparse.major=1\n", b"22 GNU.sparse.minor=0\n", b"12 uid=nan\n", b"14 mtime=inf\n",
    ])  # fmt: skip
    content = st.one_of(st.binary(max_size=200), st.lists(pax, max_size=6).map(b"".join))
    entry = st.tuples(kinds, st.text(max_size=20), content, st.text(max_size=10))
    flips = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=8)

    def check(entries: list[Any], flipped: list[tuple[int, int]], cut: int) -> None:
        made = io.BytesIO()
        for kind, name, data, link in [(b"0", "Dockerfile", b"FROM x\n", ""), *entries]:
            member = tarfile.TarInfo(name.replace("\0", "") or "a")
            member.type, member.size, member.linkname = kind, len(data), link.replace("\0", "")
            made.write(member.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))
            made.write(data + bytes(-len(data) % 512))
        plain = bytearray(made.getvalue() + bytes(1024))
        for at, value in flipped:
            plain[at % len(plain)] = value
        for raw in (bytes(plain), bytes(plain[: len(plain) - cut])):
            in_time(lambda given=raw: read_context(gzip.compress(given), "Dockerfile"))
        in_time(lambda: read_context(bytes(plain), "Dockerfile"))

    hunt(check, st.lists(entry, max_size=4), flips, st.integers(0, 3000), for_s=for_s)


def test_a_context_is_read_or_refused() -> None:
    fuzz_contexts(0)


@pytest.mark.long
def test_a_long_hunt_finds_nothing(tmp_path: Path) -> None:
    share_s = LONG_S / (len(PARSERS) + 4)
    for name in PARSERS:
        fuzz_texts(name, share_s)
    fuzz_options(share_s)
    fuzz_presigned(share_s)
    fuzz_traces(tmp_path, share_s)
    fuzz_contexts(share_s)


# Found by the tests above.


def test_a_time_zone_with_thousands_of_parts_is_refused() -> None:
    """Before: RecursionError, and 500, for a job's TZ: Python imported a package for each part."""
    here = zone_of(None)
    for name in ("a/" * 5000, "12.31/99" * 500, "../../etc/passwd", "a\0b", "__init__/py"):
        assert zone_of(name) is here
    for name in ("Europe/Berlin", ":UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires"):
        assert str(zone_of(name)) == name.removeprefix(":")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b"name,submit_s,duration_s,gpus\n1\r2,3,4,5\n"),
        (
            "t.csv.gz",
            gzip.compress(b"name,submit_s,duration_s,gpus\n", mtime=0)[:10] + b"\xff" * 40,
        ),
    ],
)
def test_a_broken_trace_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    """Before: tracebacks of csv and of zlib."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadRequest):
        list(gpu_csv.read(tmp_path / name))
