"""What all commands share: the Typer app, the common options, help, completion, usage errors."""
