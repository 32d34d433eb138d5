"""The words of a command line, as a POSIX shell splits it.

The same words as shlex.split, which takes a time that grows with the square of a word's length: 15
seconds for a word of a megabyte.
"""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""(?P<blank>[ \t\r\n]++)
    | '(?P<literal>[^']*+)'
    | "(?P<quoted>[^"\\]*+(?:\\.[^"\\]*+)*+)"
    | \\(?P<escaped>.)
    | (?P<plain>[^ \t\r\n'"\\#]++)
    | (?P<comment>\#)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"""\\(["\\])""")
_LINE = re.compile(r"[^\n]*+")


def split_shell_words(text: str, *, comments: bool = False) -> list[str]:
    """comments: # ends the line. Raises ValueError: a quote is not closed, or a backslash escapes
    nothing."""
    words: list[str] = []
    word: list[str] | None = None
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ValueError("No escaped character" if text[at] == "\\" else "No closing quotation")
        at = piece.end()
        ends = piece.lastgroup == "blank" or (comments and piece.lastgroup == "comment")
        if not ends:
            word = word if word is not None else []
            word.append(_text(piece))
            continue
        if piece.lastgroup == "comment":
            rest = _LINE.match(text, at)
            at = rest.end() if rest else at
        if word is not None:
            words.append("".join(word))
            word = None
    if word is not None:
        words.append("".join(word))
    return words


def _text(piece: re.Match[str]) -> str:
    if piece.lastgroup == "comment":
        return piece[0]
    text = piece[piece.lastgroup or 0]
    return _ESCAPED.sub(r"\1", text) if piece.lastgroup == "quoted" else text
