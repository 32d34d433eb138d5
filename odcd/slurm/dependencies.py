"""sbatch's dependencies: `afterok:12:13,after:14+5`, `singleton?afterany:7_2`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from odcd.errors import BadDependency, BadRequest, NotImplementedYet, TooLarge
from odcd.slurm.lists import parse_job_id, parse_task_id

Kind = Literal["after", "afterany", "afterok", "afternotok", "aftercorr", "singleton"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DEPENDENCY_FORMS = (
    "after:ID[+MINUTES], afterany:ID, afterok:ID, afternotok:ID, aftercorr:ID "
    "(more ids after : or ,) and singleton; joined by ',' (all) or '?' (any)"
)
MAX_TERMS = 1_000
"""Of one job. The database judges all of them while everybody waits for the turn."""
MAX_CORRESPONDING = 10
"""Of them, those with aftercorr. Each compares the tasks of two arrays."""
_LATER = frozenset({"afterburstbuffer", "expand"})
_TARGET = re.compile(r"(?P<job>[0-9]+)(?:_(?:(?P<task>[0-9]+)|\*))?(?:\+(?P<minutes>[0-9]{1,8}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One job, array (target_task None) or array element to wait for; a singleton names none."""

    kind: Kind
    target_id: int | None = None
    target_task: int | None = None
    delay_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """any: one term is enough. text: the original text."""

    text: str
    any: bool
    terms: tuple[Term, ...]


def parse_dependency(text: str) -> Dependency:
    """Raises BadDependency when the text is not a dependency, TooLarge above MAX_TERMS."""
    text = text.strip()
    if "," in text and "?" in text:
        raise BadDependency(
            f'dependency "{_cut(text)}" mixes "," and "?"',
            'Separate the conditions by "," if all must be met, or by "?" if one is enough.',
        )
    terms: list[Term] = []
    kind: Kind | None = None
    for part in re.split("[,?]", text):
        word, colon, ids = part.strip().partition(":")
        if word.isascii() and word[:1].isdigit() and kind not in (None, "singleton"):
            ids = part  # afterok:12,13 is afterok:12,afterok:13
        else:
            kind = _kind(word, text)
            if kind == "singleton" and colon:
                raise BadDependency(
                    f'dependency "{_cut(text)}": singleton does not accept a job id'
                )
        if kind == "singleton":
            terms.append(Term(kind=kind))
        else:
            terms.extend(_term(kind, target, text) for target in ids.strip().split(":"))
        if len(terms) > MAX_TERMS:
            raise TooLarge(
                f"the dependency has more than {MAX_TERMS} conditions",
                "Depend on an array as a whole, or on one job that collects the others.",
            )
    if sum(term.kind == "aftercorr" for term in terms) > MAX_CORRESPONDING:
        raise TooLarge(
            f"the dependency names more than {MAX_CORRESPONDING} arrays with aftercorr",
            "Depend on the others as a whole, for example with afterok.",
        )
    return Dependency(text=text, any="?" in text, terms=tuple(terms))


def format_dependency(dependency: Dependency) -> str:
    """A text that parses to the same terms."""
    return ("?" if dependency.any else ",").join(map(_format_term, dependency.terms))


def _format_term(term: Term) -> str:
    if term.target_id is None:
        return term.kind
    task = "" if term.target_task is None else f"_{term.target_task}"
    delay = f"+{term.delay_s // 60}" if term.delay_s else ""
    return f"{term.kind}:{term.target_id}{task}{delay}"


def _kind(word: str, text: str) -> Kind:
    lower = word.strip().lower()
    for kind in KINDS:
        if lower == kind:
            return kind
    if lower in _LATER:
        raise NotImplementedYet(
            f'dependency "{_cut(text)}": odc does not support "{lower}" yet',
            f"Accepted: {DEPENDENCY_FORMS}.",
        )
    raise BadDependency(
        f'dependency "{_cut(text)}": "{_cut(word)}" is not a condition',
        f"Accepted: {DEPENDENCY_FORMS}.",
    )


def _term(kind: Kind | None, target: str, text: str) -> Term:
    found = _TARGET.fullmatch(target.strip())
    if found is None or kind is None:
        raise BadDependency(
            f'dependency "{_cut(text)}": "{_cut(target)}" does not name a job',
            "Name a job by its id (12), or an array's task (12_3); after also accepts 12+MINUTES.",
        )
    try:
        job_id = parse_job_id(found["job"])
        task = None if found["task"] is None else parse_task_id(found["task"])
    except BadRequest as error:
        raise BadDependency(f'dependency "{_cut(text)}": {error.message}', error.hint) from None
    if found["minutes"] and kind != "after":
        raise BadDependency(
            f'dependency "{_cut(text)}": only after accepts a delay (+{found["minutes"]})'
        )
    minutes = int(found["minutes"] or 0)
    if minutes > 527_040:
        raise BadDependency(
            f'dependency "{_cut(text)}": a delay of {minutes} minutes is too long',
            "At most 527040 minutes, which is a year.",
        )
    return Term(kind=kind, target_id=job_id, target_task=task, delay_s=minutes * 60)


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
