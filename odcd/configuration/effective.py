"""The settings of the file below those of the environment, and errors that name the file."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from odcd.configuration.file import find_file, read_file, unread_file
from odcd.errors import BadRequest
from odcd.settings import Arguments, Settings, find_home, read_settings

VARIABLE = re.compile(r"\bODC_[A-Z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    file: Path | None
    """None: there is no file."""
    values: Mapping[str, str]
    """The settings of the file, by variable."""
    environment: Mapping[str, str]
    """The environment, and the settings of the file that it does not set."""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """The options that were given, by the variable that each overrides."""
    unread: Path | None = None
    """A file in root's home."""

    @property
    def warning(self) -> str | None:
        if self.unread is None:
            return None
        return (
            f"{self.unread} is not read, because the account of odcd can write there; "
            "move it and name it with --config or ODC_CONFIG"
        )

    def read(self, args: Arguments) -> Settings:
        """The settings of `up` and `serve`: arguments, else environment, else file, else defaults.

        Raises BadRequest with the invalid setting, and the file if it is from there.
        """
        with self.naming():
            return replace(read_settings(args, self.environment), config=self.file)

    @contextmanager
    def naming(self) -> Generator[None]:
        """Errors about a value of the file name the file and the setting, not a variable."""
        try:
            yield
        except BadRequest as error:
            named = self.named(error)
            if named is None:
                raise
            raise BadRequest(f"{self.file}: {named.message}", named.hint) from error

    def named(self, error: BadRequest) -> BadRequest | None:
        """The error in the words of the file; None: it is about no value of the file."""
        texts = f"{error.message} {error.hint}"
        if not any(self.is_from_file(one) for one in VARIABLE.findall(texts)):
            return None
        hint = error.hint and VARIABLE.sub(lambda found: self._name(found[0]), error.hint)
        return BadRequest(VARIABLE.sub(lambda found: self._name(found[0]), error.message), hint)

    def is_from_file(self, variable: str) -> bool:
        return variable in self.values and self.environment[variable] is self.values[variable]

    def _name(self, variable: str) -> str:
        """Also one that is set nowhere: its place is beside the others."""
        if variable in self.environment and not self.is_from_file(variable):
            return variable
        return variable.removeprefix("ODC_").lower()


def configured(
    config: str | None, home: str | None, environment: Mapping[str, str], *,
    mistakes: list[str] | None = None,
) -> Configured:  # fmt: skip
    """config, home: of --config and --home. mistakes: receives those of the file; None: a file with
    a mistake is refused. Raises BadRequest for an invalid file."""
    named = config or environment.get("ODC_CONFIG") or None
    folder = find_home(home, environment)
    file = find_file(named, folder)
    values = read_file(file, mistakes) if file is not None else {}
    given = {"ODC_HOME": home and "--home", "ODC_CONFIG": config and "--config"}
    return Configured(
        file=file, values=values, environment={**values, **environment},
        options={variable: option for variable, option in given.items() if option},
        unread=unread_file(named, folder),
    )  # fmt: skip
