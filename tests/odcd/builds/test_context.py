"""A Dockerfile's folder as uploaded: only its files are accepted, and equal folders have one
digest."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odcctl.reservations import build_context as client
from odcd.builds import context as server
from odcd.builds.context import read_context
from odcd.errors import BadRequest, OdcError, TooLarge

FROM = b"FROM busybox:1.37\n"


def packed(*entries: tuple[str, bytes | None], **more: Any) -> bytes:
    """tar, gzip; None is a folder. more: what a further entry `odd` has."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in entries:
            member = tarfile.TarInfo(name)
            member.mode, member.mtime = 0o600, 7
            if content is None:
                member.type = tarfile.DIRTYPE
            member.size = len(content or b"")
            archive.addfile(member, io.BytesIO(content or b""))
        if more:
            member = tarfile.TarInfo(more.pop("name", "odd"))
            for name, value in more.items():
                setattr(member, name, value)
            archive.addfile(member, io.BytesIO(b"\0" * member.size))
    return gzip.compress(made.getvalue())


def read(sent: bytes, dockerfile: str = "Dockerfile") -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(read_context(sent, dockerfile).packed)) as archive:
        return {member.name: member for member in archive}


def test_the_digest_depends_on_the_files_and_not_on_their_packing() -> None:
    """IMG-08"""
    first = packed(("Dockerfile", FROM), ("a", None), ("a/b", b"1"))
    other = packed(("./a/", None), ("a/b", b"1"), ("./Dockerfile", FROM))
    assert read_context(first, "Dockerfile") == read_context(other, "Dockerfile")
    changed = packed(("Dockerfile", FROM), ("a", None), ("a/b", b"2"))
    renamed = packed(("Dockerfile", FROM), ("a", None), ("a/c", b"1"))
    digests = {read_context(sent, "Dockerfile").digest for sent in (first, changed, renamed)}
    assert len(digests) == 3
    assert read_context(packed(("D2", FROM)), "D2") != read_context(packed(("D3", FROM)), "D3")


def test_the_metadata_of_packed_files_is_normalized() -> None:
    sent = packed(
        ("Dockerfile", FROM), name="run.sh", size=3, mode=0o4711, uid=1000, uname="eve", mtime=9
    )
    made = read(sent)
    assert made["Dockerfile"].mode == 0o644
    odd = made["run.sh"]
    assert (odd.mode, odd.uid, odd.uname, odd.mtime) == (0o755, 0, "", 0)


REFUSED: dict[str, tuple[bytes, str]] = {
    "no gzip": (b"FROM x", "not a gzip file"),
    "no tar": (gzip.compress(b"x" * 2000), "not a tar archive"),
    "broken off": (packed(("Dockerfile", FROM))[:-30], "one complete gzip"),
    "more behind": (packed(("Dockerfile", FROM)) + b"more", "one complete gzip"),
    "absolute": (packed(("Dockerfile", FROM), name="/etc/passwd"), "not a path below"),
    "above": (packed(("Dockerfile", FROM), name="a/../../x"), "not a path below"),
    "twice": (packed(("Dockerfile", FROM), ("./Dockerfile", FROM)), "twice"),
    "device": (packed(("Dockerfile", FROM), type=tarfile.CHRTYPE), "neither a file"),
    "fifo": (packed(("Dockerfile", FROM), type=tarfile.FIFOTYPE), "neither a file"),
    "hard link": (
        packed(("Dockerfile", FROM), type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        "neither a file",
    ),
    "absolute link": (
        packed(("Dockerfile", FROM), type=tarfile.SYMTYPE, linkname="/etc"), "out of the folder"
    ),
    "link above": (
        packed(("Dockerfile", FROM), type=tarfile.SYMTYPE, linkname="../x"), "out of the folder"
    ),
    "link by a link": (
        packed(("Dockerfile", FROM), type=tarfile.SYMTYPE, linkname="d/../.."),
        "out of the folder",
    ),
    "below a link": (
        packed(
            ("Dockerfile", FROM), ("odd/passwd", b"x"), type=tarfile.SYMTYPE, linkname="."
        ),
        "below something that is not a folder",
    ),
    "below a file": (packed(("Dockerfile", FROM), ("Dockerfile/x", b"")), "below something"),
    "no Dockerfile": (packed(("a", b"1")), 'no file "Dockerfile"'),
    "empty Dockerfile": (packed(("Dockerfile", b" \n")), "is empty"),
    "a folder": (packed(("Dockerfile", None)), 'no file "Dockerfile"'),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "why"), REFUSED.values(), ids=REFUSED)
def test_unsafe_archive_members_are_refused(sent: bytes, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        read(sent)


@pytest.mark.parametrize("name", ["../Dockerfile", "a/Dockerfile", "", ".", "-x", "a b", "x" * 101])
def test_the_dockerfile_must_be_in_the_context_folder(name: str) -> None:
    with pytest.raises(BadRequest, match="not a valid name of a Dockerfile"):
        read(packed(("Dockerfile", FROM)), name)


def test_links_within_the_folder_stay() -> None:
    link = {"name": "a/l", "type": tarfile.SYMTYPE, "linkname": "../Dockerfile"}
    sent = packed(("Dockerfile", FROM), ("a", None), **link)
    assert read(sent)["a/l"].linkname == "../Dockerfile"


SIZES: dict[str, Callable[[], bytes]] = {
    "a bomb": lambda: packed(("Dockerfile", FROM), ("zero", bytes(server.MAX_PLAIN_BYTES))),
    "many files": lambda: packed(("Dockerfile", FROM), *((f"f{n}", b"") for n in range(10_001))),
    "a long Dockerfile": lambda: packed(("Dockerfile", FROM * 40_000)),
    "too much": lambda: b"\x1f\x8b" + bytes(server.MAX_SENT_BYTES),
}


@pytest.mark.parametrize("sent", SIZES.values(), ids=SIZES)
def test_the_server_refuses_a_context_that_is_too_large(sent: Callable[[], bytes]) -> None:
    """CLI-13"""
    packed_files = sent()
    with pytest.raises(TooLarge):
        read(packed_files)


def test_the_server_accepts_contexts_packed_by_the_client(tmp_path: Path) -> None:
    """CLI-13, IMG-08"""
    (tmp_path / "Dockerfile").write_bytes(FROM)
    (tmp_path / "src" / "empty").mkdir(parents=True)
    (tmp_path / "src" / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "src" / "run.sh").chmod(0o700)
    (tmp_path / "src" / "again").symlink_to("run.sh")
    (tmp_path / "ä").write_text("1")
    sent = client.pack(str(tmp_path / "Dockerfile")).packed
    made = read(sent)
    assert sorted(made) == ["Dockerfile", "src", "src/again", "src/empty", "src/run.sh", "ä"]
    assert made["src/run.sh"].mode == 0o755
    for path in tmp_path.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    assert client.pack(str(tmp_path / "Dockerfile")).packed == sent


def test_both_sides_have_the_same_limits() -> None:
    assert client.MAX_BYTES == server.MAX_SENT_BYTES
    assert client.MAX_DOCKERFILE_BYTES == server.MAX_DOCKERFILE_BYTES == 512 * 1024
    assert client.MAX_PLAIN_BYTES == server.MAX_PLAIN_BYTES
    assert client.MAX_ENTRIES == server.MAX_ENTRIES


def test_any_bytes_are_a_context_or_refused() -> None:
    whole = packed(("Dockerfile", FROM), ("a", b"1"), name="l", type=b"2", linkname="a")
    plain = gzip.decompress(whole)
    for at in range(0, 1536, 7):
        torn = bytearray(plain)
        torn[at] ^= 0x5A
        try:
            read_context(gzip.compress(bytes(torn)), "Dockerfile")
        except OdcError:
            continue
