"""Slurm's commands: one endpoint, and what each command reads or changes.

To add a command NAME:

1. `odcd/slurm/commands/NAME.py`: its options as data and the parser of its arguments. No I/O.
2. `odcd/api/slurm/NAME.py`: `async def NAME(remote: Remote) -> Finished | Frames`. It parses with
   the module above, calls stores through `remote.api`, and returns its whole output as `Finished`,
   or an async generator of frames if the output is produced over time. Errors of odc that it
   raises are printed as `NAME: error: …`, exit code 1; Usage is printed with its own exit code.
3. `odcd/api/slurm/table.py`: one line, with whether the command only reads.
4. `odcctl/remote/names.py`: its name.

`odcctl/remote/program.py` describes the frames.
"""
