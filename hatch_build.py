"""Write the version into both packages when a wheel is built, also for an editable install.

The installed metadata has the same number. Reading it costs odcctl more time than the rest of a
command, and the runner cannot read it: it starts without site-packages.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class VersionModules(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        text = f'"""Written by hatch_build.py."""\n\n__version__ = "{self.metadata.version}"\n'
        for package in ("odcd", "odcctl"):
            Path(self.root, package, "_version.py").write_text(text, "utf-8")
            build_data["artifacts"].append(f"/{package}/_version.py")
