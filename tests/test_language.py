"""The language check finds the old style, and accepts plain English."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("language", ROOT / ".ci" / "language.py")
assert spec is not None
assert spec.loader is not None
language = importlib.util.module_from_spec(spec)
spec.loader.exec_module(language)


@pytest.mark.parametrize(
    "text",
    [
        "What is not active yet, `odcctl connect` says, and why",
        "Who asks for a disk that another reservation has, waits",
        "What a job's GPUs did is kept, and told",
        "Came they by the Unix socket: nobody said that",
        "GPUs that are held for ever",
        "The container begins anew.",
        "Told on one of the two is told",
        "The box is not ready.",
    ],
)
def test_the_old_voice_is_found(text: str) -> None:
    assert list(language.findings(text))


@pytest.mark.parametrize(
    "text",
    [
        "If the reservation is not active, `odcctl connect` explains why",
        "A reservation that asks for a disk in use waits until it is released",
        "GPU usage is shown while the job runs and kept after it ends",
        "What is a gang?",
        "No one can sign in by opening a link. Run `odcctl tell` again.",
        "The dev server waits for no more than one minute.",
    ],
)
def test_plain_english_is_accepted(text: str) -> None:
    assert list(language.findings(text)) == []


def test_no_file_has_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert language.main() == 0, capsys.readouterr().out
