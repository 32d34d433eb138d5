"""The AWS provider of OpenTofu, from a plugin folder of this machine: it is never downloaded."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

PROVIDER = "hashicorp/aws"
WANTED = "5.100.0"
"""The version that the lock files pin."""
HOW = (
    f"put version {WANTED} of the provider {PROVIDER} into a plugin folder, such as"
    f" ~/.terraform.d/plugins/registry.opentofu.org/{PROVIDER}/{WANTED}/linux_amd64, or name the"
    " folder by ODC_TEST_TF_PLUGINS"
)


class NoProvider(Exception):
    """The provider is not on this machine; the message says what is needed."""


def mirror(folder: Path) -> Path:
    """A configuration file of tofu that takes the provider from this machine only. folder: for it.

    Raises NoProvider.
    """
    for where in _found():
        there = folder / "mirror" / "registry.opentofu.org" / PROVIDER / WANTED
        there.mkdir(parents=True, exist_ok=True)
        link = there / where.name
        if not link.exists():
            link.symlink_to(where)
        settings = folder / "tofu.rc"
        settings.write_text(
            "disable_checkpoint = true\n"
            f'provider_installation {{\n  filesystem_mirror {{\n    path = "{folder / "mirror"}"\n'
            "  }\n}\n"
        )
        return settings
    raise NoProvider(f"no provider {PROVIDER} {WANTED} on this machine; {HOW}")


def _found() -> Iterator[Path]:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    system = f"{platform.system().lower()}_{machine}"
    home = Path.home()
    given = os.environ.get("ODC_TEST_TF_PLUGINS")
    for base in (
        *((Path(given),) if given else ()),
        home / ".terraform.d/plugins",
        home / ".local/share/terraform/plugins",
        home / ".local/share/opentofu/plugins",
        *(
            Path(base) / name / "plugins"
            for base in ("/usr/share", "/usr/local/share")
            for name in ("terraform", "opentofu")
        ),
        Path("/opt/terraform/plugins"), Path("/opt/tf-plugins"),
        *sorted(Path("/opt").glob("*plugins*")),
    ):  # fmt: skip
        for host in ("registry.opentofu.org", "registry.terraform.io"):
            where = base / host / PROVIDER / WANTED / system
            if any(where.glob("terraform-provider-aws*")):
                yield where
