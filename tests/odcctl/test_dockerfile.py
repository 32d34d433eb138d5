"""reserve --dockerfile: what of the folder is sent, what is refused before, what is seen."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from odcctl.exits import Failure
from odcctl.reservations.build_context import pack
from odcctl.reservations.dockerignore import Ignore
from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import a_reservation
from tests.odcctl.peer import Peer, Reply, problem
from tests.odcctl.test_reserve import DevServer, dev_server

__all__ = ["dev_server"]

DIGEST = "ab" * 32
NO_BUILD = f"/v1/builds/{'0' * 64}"
BUILD = {"id": 1, "digest": DIGEST, "state": "queued"}


def sent(folder: Path, name: str = "Dockerfile") -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(pack(str(folder / name)).packed)) as archive:
        return archive.getnames()


def a_folder(path: Path, *files: str, ignore: str | None = None) -> Path:
    for name in ("Dockerfile", *files):
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("FROM busybox\n")
    if ignore is not None:
        (path / ".dockerignore").write_text(ignore)
    return path


# As docker's documentation has the rules.
IGNORED: list[tuple[str, list[str], list[str]]] = [
    ("# comment\n*/temp*\n", ["a/temp1", "a/temporary/b"], ["temp1", "a/b/temp1"]),
    ("*/*/temp*", ["a/b/temp1"], ["a/temp1"]),
    ("temp?", ["tempa", "temp1/x"], ["temp", "tempab"]),
    ("**/*.go", ["x.go", "a/b/x.go"], ["x.gox"]),
    ("*.md\n!README.md", ["a.md"], ["README.md", "a/b.md"]),
    ("*.md\n!README*.md\nREADME-secret.md", ["a.md", "README-secret.md"], ["README-x.md"]),
    ("/foo/bar\n", ["foo/bar", "foo/bar/x"], ["bar"]),
    ("foo/", ["foo", "foo/a/b"], ["a/foo"]),
    ("a/**/z", ["a/z", "a/b/c/z"], ["z"]),
    ("node_modules\n!node_modules/keep\n", ["node_modules/x"], ["node_modules/keep/y"]),
    ("[ab]*.txt\n[^c]1", ["a.txt", "b2.txt", "d1"], ["c.txt", "c1"]),
    (r"\#a" + "\n\n  b  \n", ["#a", "b"], ["a"]),
    ("./x/../y", ["y"], ["x"]),
    ("**", ["a", "a/b"], []),
]


@pytest.mark.parametrize(("rules", "out", "kept"), IGNORED)
def test_a_dockerignore_means_what_it_means_to_docker(
    rules: str, out: list[str], kept: list[str]
) -> None:
    """CLI-13"""
    ignore = Ignore(rules.splitlines())
    assert [path for path in out if not ignore.leaves_out(path)] == []
    assert [path for path in kept if ignore.leaves_out(path)] == []


def test_what_is_ignored_is_not_sent_but_the_dockerfile_always_is(tmp_path: Path) -> None:
    a_folder(tmp_path, "big/a", "big/keep/b", "src/x.py", ignore="*\n!src\n!big/keep\n")
    assert sent(tmp_path) == [
        ".dockerignore", "Dockerfile", "big/keep", "big/keep/b", "src", "src/x.py",
    ]  # fmt: skip


def test_a_dockerfile_may_have_rules_of_its_own(tmp_path: Path) -> None:
    a_folder(tmp_path, "Dockerfile.gpu", "a", "b", ignore="a\n")
    (tmp_path / "Dockerfile.gpu.dockerignore").write_text("b\n")
    assert sent(tmp_path, "Dockerfile.gpu") == [
        ".dockerignore", "Dockerfile", "Dockerfile.gpu", "Dockerfile.gpu.dockerignore", "a",
    ]  # fmt: skip


def test_a_folder_that_is_ignored_whole_is_not_read(tmp_path: Path) -> None:
    a_folder(tmp_path, "data/x", ignore="data\n")
    (tmp_path / "data").chmod(0)
    try:
        assert sent(tmp_path) == [".dockerignore", "Dockerfile"]
    finally:
        (tmp_path / "data").chmod(0o755)


def test_a_folder_that_is_too_large_says_by_what(tmp_path: Path) -> None:
    """CLI-13: before anything is sent."""
    a_folder(tmp_path, "src/x.py")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.bin").write_bytes(os.urandom(800 * 1024))
    with pytest.raises(
        Failure, match=r"may have 700 KiB; the largest are data/ \(800 KiB\)"
    ) as failed:
        pack(str(tmp_path / "Dockerfile"))
    assert ".dockerignore" in str(failed.value.hint)
    with (tmp_path / "data" / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Failure, match=r"32 MiB before .* the largest are data/ \(1024 GiB\)"):
        pack(str(tmp_path / "Dockerfile"))


def test_wrong_dockerfiles_are_told_at_once(tmp_path: Path) -> None:
    """CLI-13"""
    a_folder(tmp_path)
    with pytest.raises(Failure, match="is a folder"):
        pack(str(tmp_path))
    with pytest.raises(Failure, match="No such file"):
        pack(str(tmp_path / "missing"))
    (tmp_path / "long").write_bytes(b"#" * (512 * 1024 + 1))
    with pytest.raises(Failure, match=r"may have at most 512 KiB"):
        pack(str(tmp_path / "long"))
    (tmp_path / "link").symlink_to("Dockerfile")
    with pytest.raises(Failure, match="not a regular file in its folder"):
        pack(str(tmp_path / "link"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Failure, match="neither a file, a folder nor a link"):
        pack(str(tmp_path / "Dockerfile"))


def test_a_wrong_rule_is_told(tmp_path: Path) -> None:
    a_folder(tmp_path, ignore="[a\n")
    with pytest.raises(Failure, match=r"\.dockerignore cannot be used"):
        pack(str(tmp_path / "Dockerfile"))


def test_the_folder_is_sent_and_the_build_reserved(
    odcctl: Odcctl, dev_server: DevServer, peer: Peer, tmp_path: Path
) -> None:
    """CLI-13, IMG-07, IMG-11: the steps are shown as they come."""
    folder = a_folder(tmp_path / "context", "src/x.py")
    peer.on("POST", "/v1/builds", BUILD)
    waiting = {**a_reservation(12, "queued"), "phase": "image_build"}
    dev_server.will(
        {**waiting, "message": "it waits (ImageBuild); image: step 1/5: FROM busybox"},
        {**waiting, "message": "it waits (ImageBuild); image: step 3/5: RUN make"},
        a_reservation(12),
    )
    done = odcctl("reserve", "--dockerfile", str(folder / "Dockerfile"))
    assert done.code == 0, done.err
    [post] = peer.requests_to("/v1/builds")
    assert post.headers["content-type"] == "application/octet-stream"
    assert post.query == {"dockerfile": "Dockerfile"}
    assert dev_server.sent["build"] == DIGEST
    for text in ("its image will be built", "step 1/5: FROM busybox", "step 3/5: RUN make"):
        assert text in done.err


def test_where_nothing_is_built_no_folder_is_read(
    odcctl: Odcctl, dev_server: DevServer, peer: Peer, tmp_path: Path
) -> None:
    """CLI-13: what is wrong with it would be mended in vain."""
    peer.on("GET", NO_BUILD, problem(400, "BadRequest", "OD010", "builds no images", "Leave it."))
    done = odcctl("reserve", "--dockerfile", str(tmp_path / "missing"))
    assert (done.code, "nothing reserved: builds no images (OD010)" in done.err) == (1, True)
    assert [request.path for request in peer.requests] == [NO_BUILD]


def test_a_wrong_folder_is_told_before_anything_is_sent(
    odcctl: Odcctl, dev_server: DevServer, peer: Peer, tmp_path: Path
) -> None:
    """CLI-13"""
    done = odcctl("reserve", "--dockerfile", str(tmp_path / "missing"))
    assert (done.code, "No such file" in done.err) == (1, True), done.err
    assert [request.path for request in peer.requests] == [NO_BUILD]


def test_rebuild_requests_a_new_build(
    odcctl: Odcctl, dev_server: DevServer, peer: Peer, tmp_path: Path
) -> None:
    a_folder(tmp_path)
    peer.on("POST", "/v1/builds", BUILD)
    odcctl("reserve", "--no-wait", "--rebuild", "--dockerfile", str(tmp_path / "Dockerfile"))
    assert peer.requests_to("/v1/builds")[0].query == {"dockerfile": "Dockerfile", "anew": "true"}


def test_a_list_tells_at_which_step_an_image_is(odcctl: Odcctl, peer: Peer) -> None:
    """IMG-07, LIF-03"""
    message = "it waits (ImageBuild): image: step 3/5: RUN make"
    building = {**a_reservation(12, "queued"), "phase": "image_build", "message": message}
    peer.on("GET", "/v1/reservations", {"reservations": [building]})
    assert "queued (image: step 3/5)" in odcctl("list").out
    waiting = {**building, "message": "it waits (ImageBuild): its image waits to be built"}
    peer.on("GET", "/v1/reservations", {"reservations": [waiting]})
    assert "queued (image build)" in odcctl("list").out


def test_what_the_build_wrote_is_printed(odcctl: Odcctl, peer: Peer) -> None:
    """IMG-07"""
    peer.on("GET", "/v1/reservations/12", {**a_reservation(12, "queued"), "build": DIGEST})
    peer.on(
        "GET", f"/v1/builds/{DIGEST}/log",
        lambda _: Reply(pieces=[b"#1 one\n#2 \x1b[2Jtwo\n"], media_type="text/plain"),
    )  # fmt: skip
    done = odcctl("logs", "--build", "12")
    assert (done.code, done.out.splitlines()[0]) == (0, "#1 one")
    assert "\x1b" not in done.out
    peer.on("GET", "/v1/reservations/12", a_reservation(12))
    assert "has no image build" in odcctl("logs", "--build", "12").err


@pytest.mark.parametrize(
    "more", [["--dockerimage", "x:1", "--dockerfile", "D"], ["--rebuild"], ["--dockerfile", ""]]
)
def test_wrong_usage_is_told_before_anything_is_asked(
    odcctl: Odcctl, peer: Peer, more: list[str]
) -> None:
    assert odcctl("reserve", *more).code == 2
    assert peer.requests == []
