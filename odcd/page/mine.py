"""CSS that marks the user's own jobs in views that are the same for everyone."""

from __future__ import annotations

from odcd.page.nodes import SLOTS

MINE = """SLOTS.c[data-user="USER"] {background-color: var(--mine)}
.bar[data-user="USER"] .edge {stroke: var(--mine); stroke-width: 3px}
div[data-user="USER"] > .user {font-weight: 650}
div[data-user="USER"] > .user::after {content: " (you)"; font-weight: 400}
div[data-user="USER"] {box-shadow: inset 3px 0 0 var(--mine)}
"""
MINE_SLOT = """.slots[data-users~="USER.N"] {--pN: var(--mine)}
"""


def mine_css(user: str) -> str:
    name = "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in user)
    rules = MINE.replace("SLOTS", "".join(MINE_SLOT.replace("N", str(n)) for n in range(SLOTS)))
    return rules.replace("USER", name)
