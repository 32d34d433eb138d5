"""Write the pages: python -m odcd.reference docs/reference"""

from __future__ import annotations

import sys
from pathlib import Path

from odcd.reference.pages import PAGES

for name, page in PAGES.items():
    (Path(sys.argv[1]) / name).write_text(page(), encoding="utf-8")
