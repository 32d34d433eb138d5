"""Take a job's results while they arrive, and from a folder of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import threading
from typing import Any

from odcctl.exits import Failure
from odcctl.sync import programs
from odcctl.sync.kept import Kept
from odcctl.sync.results import Results
from odcctl.sync.step import Ended
from odcctl.text.render import clean, note

SHELL = ("/bin/sh", "-c")


class Extraction:
    """Extracts results while they arrive, in a thread."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._reading, self._writing = os.pipe()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._extract, daemon=True)
        self.failure: Exception | None = None
        self.answer: Any = Answer(self)

    def __enter__(self) -> Extraction:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._writing)
        self._thread.join()

    def sink(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._writing, data) :]

    def wait(self) -> bool:
        """Wait until all have arrived; whether they were extracted."""
        self._over.wait()
        return self.failure is None

    def _extract(self) -> None:
        # Unbuffered: a read must not wait for more than there is.
        with os.fdopen(self._reading, "rb", buffering=0) as source:
            try:
                self._results.extract(source)
            except (tarfile.TarError, OSError, EOFError) as error:
                self.failure = error
            self._over.set()
            while source.read(65_536):  # Otherwise its writer would wait forever.
                pass


class Answer:
    """The input of the step: a line when its output was extracted, or else nothing."""

    def __init__(self, extraction: Extraction) -> None:
        self._extraction = extraction
        self._given = False

    def read(self, size: int) -> bytes:
        if self._given or not self._extraction.wait():
            return b""
        self._given = True
        return b"fetched\n"


def report(results: Results, kept: Kept, ended: Ended) -> None:
    folder = clean(kept.folder)
    if results.count:
        note(f"odcctl: job {kept.job} changed files in {folder}: {results.amount}")
    else:
        note(f"odcctl: job {kept.job} changed no files")
    for line in results.beside:
        note(f"odcctl: changed here, too, so the job's version was kept beside it: {clean(line)}")
    for line in results.refused:
        note(f"odcctl: not fetched: {clean(line)}")
    if ended.code == programs.NOT_READ:
        note(f"odcctl: not all results could be read in the job: {first_line(ended.stderr)}")


def fetch_here(kept: Kept) -> bool:
    """Fetch the results of an ended job whose folder is on this machine; False: it is not."""
    folder = f"{kept.prefix}-{kept.attempt}-0"
    if not os.path.exists(os.path.join(folder, programs.LAST)):
        return False
    results = Results(kept.folder, kept.job, kept.known)
    argv = [*SHELL, programs.RESULTS, "sync", kept.prefix, str(kept.attempt)]
    done = subprocess.Popen(
        argv, env={**os.environ, "ODC_RANK": "0"}, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, bufsize=0,
    )  # fmt: skip
    with done as process:
        assert process.stdout is not None
        try:
            results.extract(process.stdout)
        except (tarfile.TarError, OSError, EOFError) as error:
            process.kill()
            raise Failure(f"{kept.folder}: {error}", f"The files are in {folder}.") from None
    report(results, kept, Ended(0, ""))
    shutil.rmtree(folder, ignore_errors=True)
    kept.forget()
    return True


def first_line(text: str) -> str:
    """The first line of a program in the job."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("srun: "))
    return clean(next(lines, ""))
