"""Documents match the code: generated pages are up to date, links have targets."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import odcctl.reference
import odcd.reference.events
import odcd.reference.pages
import odcd.slurm.commands.reference
import odcd.slurm.reference
from odcctl.cli.verbs import VERBS
from odcd import commands

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
GENERATED = {
    **odcd.reference.pages.PAGES,
    "odcctl.md": odcctl.reference.page,
    "submit-options.md": odcd.slurm.reference.reference_page,
    "slurm-options.md": odcd.slurm.commands.reference.reference_page,
}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
EVENT = re.compile(r"insert into event \(at, kind,.*?(?=\n\s*(?:from|;)|;)", re.S)


def documents() -> list[Path]:
    tops = [path for path in ROOT.glob("*.md")]
    below = [
        path
        for name in ("docs", "k8s", "tofu", "grafana", "sql", "tests/support")
        for path in (ROOT / name).rglob("*.md")
    ]
    return sorted([*tops, *below])


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == GENERATED[name](), "run: make docs"


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    broken = [link for link in _links(path) if not _leads(path, link)]
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        for link in _links(page):
            if link.startswith("#"):
                continue
            target = (page.parent / link.partition("#")[0]).resolve()
            ahead.append(target / "README.md" if target.is_dir() else target)
    pages = {path for path in documents() if ROOT / "docs" in path.parents}
    assert sorted(str(page.relative_to(ROOT)) for page in pages - reached) == []


def test_every_decision_is_in_the_index_once() -> None:
    index = ROOT / "docs" / "decisions" / "README.md"
    pages = {path.name for path in index.parent.glob("*.md")} - {index.name}
    assert sorted(_links(index)) == sorted(pages)


def test_architecture_describes_every_folder() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = [
        f"`{path.parent.name}/`"
        for package in ("odcd", "odcctl")
        for path in (ROOT / package).glob("*/__init__.py")
    ]
    assert [name for name in names if name not in text] == []


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()}
    named = {
        name for name in re.findall(r"`([\w./-]+)`", text)
        if name.partition("/")[0] in tops and not re.search("NAME|NNNN", name)
    }  # fmt: skip
    assert len(named) > 30
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_every_command_is_in_the_reference() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md"))
    names = [f"odcctl {verb}" for verb in VERBS] + [
        f"odcd {path.stem}"
        for path in Path(commands.__path__[0]).glob("*.py")
        if not path.stem.startswith("_")
    ]
    assert [name for name in names if name not in texts] == []


def test_every_kind_of_event_is_described_and_written_by_some_function() -> None:
    written: set[str] = set()
    for path in (ROOT / "sql" / "functions").rglob("*.sql"):
        for statement in EVENT.findall(path.read_text(encoding="utf-8")):
            written |= _kinds(statement)
    assert written == set(odcd.reference.events.EVENTS)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_systemd_unit_is_valid(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "operating" / "odc.service").read_text(encoding="utf-8")
    unit = tmp_path / "odc.service"
    # The program it names must be there to be verified.
    unit.write_text(text.replace("/opt/odc/bin/odcd", sys.executable), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def _kinds(statement: str) -> set[str]:
    """The literals that may become the kind: what follows the time in each select or values."""
    kinds: set[str] = set()
    for kind in re.findall(r"(?:select|\() ?p_now, (.*?),", statement):
        if "p_outcome" in kind:  # _change_pending, called by hold_jobs and release_jobs
            kinds |= {"held", "released"}
        elif "state" in kind:
            kinds |= {"node_up", "node_drain", "node_down"}
        else:
            kinds |= set(re.findall(r"'(\w+)'", kind))
    return kinds


def _links(path: Path) -> Iterator[str]:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if not re.match(r"[a-z]+:", link):
            yield link


def _leads(path: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    return target.exists() and (not anchor or anchor in _anchors(target))


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }
