"""The commands of odcctl: a module each, with a Typer app, imported when it is called."""
