from __future__ import annotations

import shlex
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odcd.slurm.shell_words import split_shell_words

_TEXT = st.text(st.sampled_from("""ab é'"\\#$ \t\r\n"""), max_size=30)


@given(_TEXT, st.booleans())
@example('"" x', False)
@example("a#b c\nd", True)
@example(r'"\$\"\\"', False)
def test_words_are_those_of_the_standard_library(text: str, comments: bool) -> None:
    try:
        expected: list[str] | None = shlex.split(text, comments=comments)
    except ValueError:
        expected = None
    if expected is None:
        with pytest.raises(ValueError, match="No "):
            split_shell_words(text, comments=comments)
    else:
        assert split_shell_words(text, comments=comments) == expected


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5))
def test_joined_words_are_split_again(words: list[str]) -> None:
    assert split_shell_words(shlex.join(words)) == words


@pytest.mark.parametrize(
    "text",
    ["a" * 2_000_000, '"' + r"\"" * 300_000 + '"', "a'b'" * 200_000],
)
def test_the_time_grows_with_the_length_alone(text: str) -> None:
    """Before: 15 seconds of the daemon's processor for a word of a megabyte."""
    before = time.process_time()
    assert len(split_shell_words(text)) == 1
    assert time.process_time() - before < 10
