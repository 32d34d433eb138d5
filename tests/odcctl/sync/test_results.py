"""Extract what a job, which may be hostile, returns."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from odcctl.sync.programs import LAST
from odcctl.sync.results import Results
from odcctl.sync.sending import digest_of


def archive(*members: tuple[str, bytes, bytes | str]) -> bytes:
    """name, type, and content or the goal of a link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.mtime = kind, 1_000_000_000
            member.mode = 0o7777
            if isinstance(content, str):
                member.linkname = content
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


END = archive((LAST, tarfile.REGTYPE, b"0\n"))
FILE, LINK, HARD = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def extract(folder: Path, *archives: bytes, known: dict[str, list[str]] | None = None) -> Results:
    results = Results(str(folder), "7", {} if known is None else known)
    results.extract(io.BytesIO(b"".join(archives) + END))
    return results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    "member",
    [
        ("/tmp/absolute", FILE, b"x"), ("../up", FILE, b"x"), ("./a/../../up", FILE, b"x"),
        ("./out", LINK, "/etc"), ("./out", LINK, ".."), ("./a/out", LINK, "../.."),
        ("./out", LINK, "x/../../y"), ("./hard", HARD, "/etc/passwd"), ("./hard", HARD, "../x"),
        ("./hard", HARD, "./none"), ("./fifo", tarfile.FIFOTYPE, b""),
        ("./device", tarfile.CHRTYPE, b""), ("./.git/hooks/post-checkout", FILE, b"x"),
        ("./.GIT/config", FILE, b"x"), ("./sub/.git", LINK, "x"), ("./here/file", FILE, b"x"),
        ("./is-folder", FILE, b"x"),
    ],
)  # fmt: skip
def test_nothing_is_written_outside_the_folder(
    folder: Path, member: tuple[str, bytes, bytes | str]
) -> None:
    (folder / "here").symlink_to(folder.parent)
    (folder / "is-folder").mkdir()
    before = names(folder.parent)
    results = extract(folder, archive(member, ("./good", FILE, b"good")))
    assert [line.partition(": ")[0] for line in results.refused] == [member[0]]
    added = set(names(folder.parent)) - set(before)
    assert added <= {"folder/good", "folder/a"}
    assert (folder / "good").read_bytes() == b"good"


def test_a_link_and_a_file_through_it_in_one_archive_stay_inside(folder: Path) -> None:
    results = extract(
        folder, archive(("./a", LINK, "b"), ("./a/file", FILE, b"x"), ("./b/x", FILE, b"x"))
    )
    assert names(folder) == ["a", "b", "b/x"]
    assert "a is not a folder here" in results.refused[0]


def test_modes_are_never_special_and_files_stay_writable(folder: Path) -> None:
    extract(folder, archive(("./x", FILE, b"x")))
    assert (folder / "x").stat().st_mode & 0o7777 == 0o755


def test_any_name_and_many_archives_come_back(folder: Path) -> None:
    many = [("./" + name, FILE, name.encode("utf-8", "surrogateescape"))
            for name in ("two\nlines", "ü", "\udcff", "deep/er/file", "e" * 250)]  # fmt: skip
    results = extract(folder, *(archive(member) for member in many), archive(("./0", FILE, b"")))
    assert (results.count, results.refused) == (6, [])
    assert (folder / "two\nlines").read_text() == "two\nlines"
    assert (folder / os.fsdecode(b"\xff")).exists()


def test_a_hard_link_becomes_a_copy(folder: Path) -> None:
    extract(folder, archive(("./a", FILE, b"a"), ("./b", HARD, "./a")))
    assert (folder / "b").read_bytes() == b"a"
    assert (folder / "b").stat().st_nlink == 1


def test_only_files_that_odcctl_sent_or_extracted_are_replaced(folder: Path) -> None:
    (folder / "sent").write_text("old")
    (folder / "edited").write_text("old")
    (folder / "link").symlink_to("old")
    known = {name: [str(digest_of(str(folder / name)))] for name in ("sent", "edited", "link")}
    (folder / "edited").write_text("mine")
    (folder / "new").write_text("mine")
    (folder / "through").symlink_to("edited")
    changed = archive(
        *((f"./{name}", FILE, b"job") for name in ("sent", "edited", "new", "through")),
        ("./link", LINK, "sent"),
    )
    results = extract(folder, changed, known=known)
    assert (folder / "sent").read_text() == "job"
    assert (folder / "link").readlink() == Path("sent")
    for name in ("edited", "new", "through"):
        assert (folder / f"{name}.odc-7").read_text() == "job"
        assert (folder / name).read_text() == "mine"
    assert results.beside == [f"{name} as {name}.odc-7" for name in ("edited", "new", "through")]
    # Once more, and then with other results of a later attempt.
    before = names(folder)
    assert extract(folder, changed, known=known).beside == []
    assert names(folder) == before
    later = archive(("./sent", FILE, b"later"), ("./edited", FILE, b"later"))
    assert extract(folder, later, known=known).beside == ["edited as edited.odc-7.2"]
    assert (folder / "sent").read_text() == "later"


def test_a_file_that_is_the_same_is_not_touched(folder: Path) -> None:
    (folder / "same").write_text("same")
    before = (folder / "same").stat().st_ino
    results = extract(folder, archive(("./same", FILE, b"same")))
    assert ((folder / "same").stat().st_ino, results.count, names(folder)) == (before, 0, ["same"])


def test_results_that_end_too_early_are_noticed(folder: Path) -> None:
    whole = archive(("./a", FILE, b"a" * 2000))
    for data in (b"", whole, whole[:1500]):
        with pytest.raises((EOFError, tarfile.ReadError)):
            Results(str(folder), "7", {}).extract(io.BytesIO(data))
    assert [name for name in names(folder) if name.startswith(".odc-")] == []
