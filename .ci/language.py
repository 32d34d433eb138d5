"""Reject English that readers have to decode: python .ci/language.py

Checks documents whole, and comments, docstrings and messages of code.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("odc", "odcd", "odcctl", "sql", "docs", "grafana", "k8s", "benchmarks", "tofu")
FILES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
SKIPPED = ("docs/reference/", "sql/migrations/", "grafana/dashboards/")
"""Generated from what is checked, or never changed again."""

PATTERNS = {
    r"\banew\b": "again",
    r"\bfor ever\b": "forever",
    r"\bnobody\b": "no one",
    r"\b(told|tells?|telling)\b": "report, print, show, return",
    r"\b(is|are|was|were|be) said\b": "name who says it",
    r"\b(comes?|came|become) of\b": "result, outcome",
    r"\b(knows?|knew) of\b": "knows",
    r"\b(no|any) more\b(?! than)": "no longer, not ... again",
    r"\bmost of it\b": "at most ...",
    r"\bboxe?s?\b(?!-)": "dev server",  # box-shadow is CSS
    r"(?:^|(?<=[.:;] ))(Who|Whoever|Whose|What|Whatever)\b(?! is\b[^.]*\?)(?![^.\n]*\?)": (
        "start with the noun: no clause that stands for one"
    ),
}
_COMPILED = [(re.compile(pattern, re.MULTILINE), hint) for pattern, hint in PATTERNS.items()]
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """(position, words, hint) of each finding; code in backquotes is not English."""
    text = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    for pattern, hint in _COMPILED:
        for found in pattern.finditer(text):
            yield found.start(), found[0], hint


def english(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of the parts that people read."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield 1, text
    elif path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string.lstrip("# ")
            elif token.type == tokenize.STRING and " " in token.string:
                body = re.sub(r'^\w*("""|"|\')|("""|"|\')$', "", token.string)
                if re.match(r"\w*[fF]", token.string[: token.string.find(token.string[-1])]):
                    body = re.sub(r"\{[^{}]*\}", "…", body)
                yield token.start[0], body
    elif path.suffix == ".sh":
        for number, line in enumerate(text.split("\n"), 1):
            found = re.match(r"\s*# (.*)|.*\b(?:say|fail|echo) ([\"'])(.*)\2", line)
            yield number, (found[1] or found[3] or "") if found else ""
    elif path.suffix == ".sql":
        for number, line in enumerate(text.split("\n"), 1):
            code, dashes, comment = line.partition("--")
            yield (
                number,
                comment.strip() if dashes else " ".join(re.findall(r"'([^']* [^']*)'", code)),
            )


def paths() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *FOLDERS, *FILES],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [
        ROOT / name
        for name in listed.stdout.split("\n")
        if name.endswith((".md", ".py", ".sh", ".sql"))
        and not name.startswith(SKIPPED)
        and (ROOT / name).is_file()
    ]


def main() -> int:
    """Print each finding as path:line; 1 if there is one."""
    wrong = [
        f"{path.relative_to(ROOT).as_posix()}:{number + text.count(chr(10), 0, position)}: "
        f'"{words}": {hint}'
        for path in paths()
        for number, text in english(path)
        for position, words, hint in findings(text)
    ]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
