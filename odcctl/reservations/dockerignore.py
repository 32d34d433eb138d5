"""The files that a .dockerignore excludes, by docker's rules."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Ignore:
    """The last rule that matches decides. A rule that matches a folder also matches its content."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Raises ValueError for an invalid pattern."""
        self._rules: list[tuple[re.Pattern[str], bool]] = []
        for line in lines:
            text = line.strip()
            if line.startswith("#") or not text:
                continue
            keeps = text.startswith("!")
            pattern = _clean(text[1:].strip() if keeps else text)
            if pattern:
                self._rules.append((compile_pattern(pattern), keeps))

    @property
    def takes_back(self) -> bool:
        """Whether a file in an excluded folder may be kept."""
        return any(keeps for _, keeps in self._rules)

    def leaves_out(self, path: str) -> bool:
        """path: relative to the folder, with slashes."""
        parts = path.split("/")
        above = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
        out = False
        for pattern, keeps in self._rules:
            if out == keeps and any(pattern.fullmatch(one) for one in above):
                out = not keeps
        return out


def _clean(pattern: str) -> str:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", ".", ".."):
            parts.append(part)
    return "/".join(parts)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Of docker's pattern language, for a whole path. Raises ValueError."""
    made, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**", at):
            at += 2
            if pattern.startswith("/", at):
                at += 1
                made += "(?:.*/)?"
            else:
                made += ".*"
            continue
        at += 1
        if char == "*":
            made += "[^/]*"
        elif char == "?":
            made += "[^/]"
        elif char == "[":
            end = pattern.find("]", at + 1 + pattern.startswith("^", at))
            if end < 0:
                raise ValueError(f'"{pattern}" has a [ without a matching ]')
            inside = pattern[at:end].replace("\\", "\\\\").replace("[", "\\[")
            made += f"[{inside}]"
            at = end + 1
        elif char == "\\":
            if at == len(pattern):
                raise ValueError(f'"{pattern}" ends with a backslash')
            made += re.escape(pattern[at])
            at += 1
        else:
            made += re.escape(char)
    try:
        return re.compile(made, re.DOTALL)
    except re.error as error:
        raise ValueError(f'"{pattern}" is not a valid pattern: {error}') from None
