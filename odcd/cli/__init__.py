"""The machinery of odcd's command line: the Typer app, common options, completion."""
