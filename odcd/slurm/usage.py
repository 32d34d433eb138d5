"""Usage errors in Slurm's words, with its exit codes."""

from __future__ import annotations

USAGE_CODE = 255
"""The exit code of sbatch, srun and salloc for options that do not exist or cannot be read."""


class Usage(Exception):
    """Ends a command. text: for standard error; out: for standard output."""

    def __init__(self, text: str = "", *, out: str = "", code: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.out = out
        self.code = code


def fail(name: str, message: str, code: int = 1) -> Usage:
    """NAME: error: MESSAGE."""
    return Usage(f"{name}: error: {message}\n", code=code)
