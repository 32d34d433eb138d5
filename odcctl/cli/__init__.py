"""The machinery of all commands: the Typer app, common options, help, completion, errors."""
