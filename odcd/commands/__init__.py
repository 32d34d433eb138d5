"""The commands of odcd, a module each: its Typer app is a function, which returns the exit code.

A module imports what the command does when it is called: help and completion import them all.
"""
