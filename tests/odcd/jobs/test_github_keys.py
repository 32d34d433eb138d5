"""Keys of GitHub users: all of them, up to date, whatever GitHub does."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odcd.errors import BadRequest, KeysUnavailable, UnknownUser
from odcd.jobs import github_keys
from odcd.jobs.github_keys import TYPES, GithubKeys, key_of
from tests.support.builders.jobs import NOW
from tests.support.fakes.clock import VirtualClock
from tests.support.fakes.github import ED25519, Github, a_github

Work = Callable[[Github, GithubKeys, VirtualClock], Coroutine[Any, Any, None]]


def a_key(kind: str, seed: bytes = b"k") -> str:
    """A line as OpenSSH writes it: the blob begins with its type."""
    name = kind.encode()
    blob = len(name).to_bytes(4, "big") + name + (32).to_bytes(4, "big") + seed * 32
    return f"{kind} {base64.b64encode(blob).decode()}"


def run(work: Work, *, timeout_s: float = 60.0, **answers: str | bytes | int) -> None:
    async def all_of_it() -> None:
        async with a_github(**answers) as github:
            clock = VirtualClock(NOW)
            keys = GithubKeys(github.url, clock, timeout_s=timeout_s)
            try:
                await work(github, keys, clock)
            finally:
                await keys.close()

    asyncio.run(all_of_it())


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_every_key_type_of_openssh_is_accepted(kind: str) -> None:
    """ACC-03: ecdsa-sha2-* and sk-* as well; comments are removed."""
    assert key_of(f"{a_key(kind)} alice@laptop more words") == a_key(kind)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ssh-ed25519",
        "ssh-dss AAAAB3NzaC1kc3MAAACBAP",
        f'command="rm -rf /" {ED25519}',
        f"no-pty {ED25519}",
        f"cert-authority {ED25519}",
        "ssh-ed25519 not/base64!",
        "ssh-ed25519 AAAA",
        a_key("ssh-rsa").replace("ssh-rsa", "ssh-ed25519"),
        "ssh-rsa " + "A" * 40_000,
        "<html> <body>",
    ],
)
def test_lines_that_are_not_plain_keys_are_left_out(line: str) -> None:
    """ACC-03, SEC: no options, which could run commands; no other types."""
    assert key_of(line) is None


def test_each_key_of_a_user_is_returned_once() -> None:
    """ACC-01: not only the first one."""
    lines = [a_key("ssh-ed25519"), a_key("ssh-rsa"), a_key("ecdsa-sha2-nistp256")]

    async def work(github: Github, keys: GithubKeys, clock: VirtualClock) -> None:
        assert await keys.of("octocat") == lines

    run(work, octocat="\n".join([*lines, f"{lines[0]} again", "", "garbage here"]) + "\r\n")


def test_an_unknown_user_and_a_user_without_keys_are_refused() -> None:
    """ACC-02."""

    async def work(github: Github, keys: GithubKeys, clock: VirtualClock) -> None:
        with pytest.raises(UnknownUser, match='GitHub has no user "nobody"'):
            await keys.of("nobody")
        with pytest.raises(BadRequest, match='"empty" has no SSH keys'):
            await keys.of("empty")

    run(work, empty="\n")


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "a--b", "a" * 40, "a/b", "../x", "a?b", "a b", "a\n", "é", "a_b"]
)
def test_an_invalid_github_name_is_not_requested(name: str) -> None:
    """AUT-10."""

    async def work(github: Github, keys: GithubKeys, clock: VirtualClock) -> None:
        with pytest.raises(BadRequest, match="not a valid GitHub user name"):
            await keys.of(name)
        assert github.requested == []

    run(work)


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (500, "HTTP status 500"),
        (429, "HTTP status 429"),
        (302, "HTTP status 302"),
        (b"x" * 300_000, "more than 256 KiB"),
        (b"\xff\xfe<html>sorry</html>\n", "no SSH key"),
    ],
)
def test_an_unusable_answer_is_an_error(answer: bytes | int, word: str) -> None:
    """ACC-02, BUG-21: it is not mistaken for a user without keys; no redirect is followed."""

    async def work(github: Github, keys: GithubKeys, clock: VirtualClock) -> None:
        with pytest.raises(KeysUnavailable, match=word):
            await keys.of("octocat")
        assert github.requested == ["octocat"]

    run(work, octocat=answer)


@pytest.mark.long
def test_a_slow_or_unreachable_github_is_reported_in_time() -> None:
    """ACC-02: a clear refusal instead of a hang."""

    async def work(github: Github, keys: GithubKeys, clock: VirtualClock) -> None:
        github.delay_s = 2
        with pytest.raises(KeysUnavailable, match="did not answer within"):
            await keys.of("octocat")
        away = GithubKeys("http://127.0.0.1:9", clock)
        with pytest.raises(KeysUnavailable, match="cannot be fetched now"):
            await away.of("octocat")
        await away.close()

    run(work, timeout_s=0.2, octocat=ED25519)


def test_a_revoked_key_is_removed_at_once_and_an_outage_is_bridged() -> None:
    """ACC-04: a live request first, then a short cache; the last answer is used only when GitHub
    fails, and not for long."""
    first, second = a_key("ssh-ed25519"), a_key("ssh-rsa")

    async def work(github: Github, keys: GithubKeys, clock: VirtualClock) -> None:
        assert await keys.of("octocat") == [first]
        github.answers["octocat"] = second
        assert await keys.of("Octocat") == [first]
        clock.move(github_keys.KEPT_S + 1)
        assert await keys.of("octocat") == [second]
        github.answers["octocat"] = 503
        clock.move(github_keys.KEPT_S + 1)
        assert await keys.of("octocat") == [second]
        clock.move(github_keys.STALE_S)
        with pytest.raises(KeysUnavailable):
            await keys.of("octocat")
        github.answers["octocat"] = second
        await keys.of("octocat")
        github.answers["octocat"] = ""
        clock.move(github_keys.KEPT_S + 1)
        with pytest.raises(BadRequest):
            await keys.of("octocat")
        github.answers["octocat"] = 500
        with pytest.raises(KeysUnavailable):
            await keys.of("octocat")

    run(work, octocat=first)


def test_concurrent_lookups_share_one_request(caplog: pytest.LogCaptureFixture) -> None:
    """And no key is ever logged."""
    caplog.set_level(logging.DEBUG)

    async def work(github: Github, keys: GithubKeys, clock: VirtualClock) -> None:
        github.delay_s = 0.1
        every = await asyncio.gather(*(keys.of("octocat") for _ in range(20)))
        assert every == [[ED25519]] * 20
        assert github.requested == ["octocat"]

    run(work, octocat=f"{ED25519}\n{ED25519} x\nssh-rsa garbage")
    assert ED25519.split()[1] not in caplog.text
