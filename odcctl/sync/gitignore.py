"""The files that a .gitignore or .odcignore excludes, by git's rules."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable

from odcctl.exits import Failure
from odcctl.reservations.dockerignore import compile_pattern

OWN = ".odcignore"
"""If the folder has it, no .gitignore is read."""
GITS = ".gitignore"
ALWAYS = frozenset({".git", "__pycache__"})
"""Names that are never sent or fetched: programs in .git run when the user calls git."""
MAX_BYTES = 1 << 20


def is_never_sent(name: str) -> bool:
    # On case-insensitive file systems, .GIT is the same folder.
    return name.casefold() in ALWAYS


class Rules:
    """The rules of one file, for paths in its folder."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Raises ValueError for an invalid pattern."""
        self._rules: list[tuple[re.Pattern[str], bool, bool]] = []
        for line in lines:
            text = _without_blanks(line)
            if not text or text.startswith("#"):
                continue
            keeps = text.startswith("!")
            text = text.removeprefix("!")
            only_folders = text.endswith("/")
            text = text.rstrip("/")
            if not text:
                continue
            # Without a slash, a pattern is for names at any depth.
            text = text.removeprefix("/") if "/" in text else f"**/{text}"
            found = compile_pattern(text.replace("[!", "[^"))
            self._rules.append((found, keeps, only_folders))

    def decide(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether the last rule that matches excludes it; None: no rule matches."""
        for pattern, keeps, only_folders in reversed(self._rules):
            if (is_folder or not only_folders) and pattern.fullmatch(path):
                return not keeps
        return None


class Ignore:
    """The rules of a folder and of the folders below it, which are entered from above."""

    def __init__(self, root: str) -> None:
        self._root = root
        own = _read(os.path.join(root, OWN))
        self._rules: list[tuple[str, Rules]] = [] if own is None else [("", own)]
        self._reads_git = own is None

    def enter(self, folder: str) -> None:
        """Read the folder's own rules. folder: with a slash at its end; "" is the first."""
        # The rules of a sibling do not hold here.
        self._rules = [(base, rules) for base, rules in self._rules if folder.startswith(base)]
        if self._reads_git:
            rules = _read(os.path.join(self._root, folder, GITS))
            if rules is not None:
                self._rules.append((folder, rules))

    def excludes(self, path: str, *, is_folder: bool) -> bool:
        for base, rules in reversed(self._rules):
            decision = rules.decide(path[len(base) :], is_folder=is_folder)
            if decision is not None:
                return decision
        return False


def _read(path: str) -> Rules | None:
    """None: there is no such file. Raises Failure."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}") from None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        text = file.read(MAX_BYTES).decode("utf-8", "surrogateescape")
    try:
        return Rules(text.removeprefix("\ufeff").splitlines())
    except ValueError as error:
        raise Failure(f"{path} cannot be used: {error}") from None


def _without_blanks(line: str) -> str:
    """Blanks at the end count only after a backslash."""
    text = line.rstrip("\r\n")
    while text.endswith((" ", "\t")) and not text.endswith("\\ "):
        text = text[:-1]
    return text
