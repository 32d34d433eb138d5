"""The scripts that make a shell complete a program's words. odcd's are made here, too."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

RC_LINES = {
    "bash": '# In ~/.bashrc:  eval "$(%s completion bash)"',
    "zsh": '# In ~/.zshrc, after compinit:  eval "$(%s completion zsh)"',
    "fish": "# In ~/.config/fish/config.fish:  %s completion fish | source",
}
"""By shell: where its script belongs."""


def variable_of(program: str) -> str:
    """The environment variable by which a script asks the program for completions."""
    return f"_{program.upper()}_COMPLETE"


def script_of(shell: str, program: str) -> str:
    """Click's script for bash, zsh or fish; its first line says where it belongs."""
    kind = get_completion_class(shell)
    assert kind is not None
    # Not source(), which starts a shell to ask for its version.
    shell_class = kind(click.Command(program), {}, program, variable_of(program))
    source = shell_class.source_template % shell_class.source_vars()
    return f"{RC_LINES[shell] % program}\n{source.strip()}\n"
