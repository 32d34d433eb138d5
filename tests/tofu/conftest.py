"""OpenTofu on copies of tofu/: without a cloud, or against moto's server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fakes.aws import answers
from tests.support.harness.controlplane.children import Child, free_port, module
from tests.support.harness.tofu import build
from tests.support.harness.tofu.build import NoTofu
from tests.support.harness.tofu.cloud import Cloud
from tests.support.harness.tofu.provider import NoProvider, mirror
from tests.support.harness.tofu.workspace import Workspace

_HERE = Path(__file__).parent
SETTINGS = {
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
    "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
    "MOTO_ACM_VALIDATION_WAIT": "1",
}
_SLOW = frozenset({"tofu", "mocked", "cloud", "applied", "production"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents and _SLOW & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def tofu() -> Path:
    """The program, which may have to be built."""
    try:
        return build.tofu()
    except NoTofu as why:
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration of tofu with the AWS provider of this machine."""
    try:
        return mirror(tmp_path_factory.mktemp("mirror"))
    except NoProvider as why:
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def mocked(tofu: Path, provider: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A copy of tofu/ whose commands reach no AWS."""
    return Workspace(tofu, provider, tmp_path_factory.mktemp("mocked"))


@pytest.fixture(scope="module")
def cloud(tofu: Path, provider: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    folder, port = tmp_path_factory.mktemp("cloud"), free_port()
    argv, env = module("tests.support.fakes.moto_cloud", str(port))
    moto = Child(argv, folder / "moto.log", env | SETTINGS)
    moto.start()
    try:
        moto.wait_until(lambda: answers(port), "moto's server")

        def make(name: str) -> Workspace:
            (folder / name).mkdir()
            return Workspace(tofu, provider, folder / name, f"http://127.0.0.1:{port}")

        yield Cloud(port, make)
    finally:
        moto.stop()
