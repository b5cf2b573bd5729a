"""Cases of two sets of results: which are the same work, and where the others differ."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from analysis.rows import NAME_COLUMNS, Row
from bench.units import format_size

WORK = {"useful_bytes": "useful bytes a pass", "ops": "operations a pass"}
"""Columns that must agree for seconds to be comparable."""
NEAR_NAMES = 2
"""Fields in which two cases may differ and still be taken for attempts at the same thing."""

Key = tuple[str, str]
"""Case; host, or nothing where each side has one host only."""
_Differs = tuple[tuple[str, str, str], ...]
_NAMES = {column: column for column in NAME_COLUMNS}


@dataclass(frozen=True)
class Refusal:
    """Cases that are not compared because they are not the same work."""

    cases: tuple[str, ...]
    differs: tuple[tuple[str, str, str], ...]
    """(field, its value before, its value after)."""

    def __str__(self) -> str:
        told = ", ".join(f"{name}: {before} -> {after}" for name, before, after in self.differs)
        more = f" and {len(self.cases) - 1} more" if len(self.cases) > 1 else ""
        return f"{self.cases[0]}{more}: {told}"


@dataclass
class Matched:
    """Cases of two sides."""

    equal: dict[Key, tuple[list[Row], list[Row]]] = field(default_factory=dict)
    """Rows before and after of cases of one name and equal work."""
    refused: list[Refusal] = field(default_factory=list)
    only_before: list[str] = field(default_factory=list)
    only_after: list[str] = field(default_factory=list)


def match(before: Sequence[Row], after: Sequence[Row]) -> Matched:
    """Put cases of one name together; hosts are told apart where a side has several."""
    several = any(len({row["host"] for row in side}) > 1 for side in (before, after))
    old, new = (_by_case(side, several) for side in (before, after))
    matched = Matched()
    refused: list[tuple[str, _Differs]] = []
    for key in (key for key in old if key in new):
        if differs := _unequal_work(old[key], new[key]):
            refused.append((key[0], differs))
        else:
            matched.equal[key] = old[key], new[key]
    left = {key: rows for key, rows in old.items() if key not in new}
    right = {key: rows for key, rows in new.items() if key not in old}
    refused += _near_names(left, right)
    matched.refused = _gathered(refused)
    matched.only_before = sorted({case for case, _ in left})
    matched.only_after = sorted({case for case, _ in right})
    return matched


def _by_case(rows: Iterable[Row], several_hosts: bool) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault((row["case"], row["host"] if several_hosts else ""), []).append(row)
    return found


def _unequal_work(old: list[Row], new: list[Row]) -> _Differs:
    """Say in which fields the work differs, and what in the full names goes with it."""
    work = _differing(WORK, old, new)
    named = _differing(_NAMES, old, new) if work else ()
    return (*named, *work)


def _differing(columns: Mapping[str, str], old: list[Row], new: list[Row]) -> _Differs:
    found = []
    for column, title in columns.items():
        before, after = ({row[column] for row in rows} for rows in (old, new))
        if before != after:
            found.append((title, _told(column, before), _told(column, after)))
    return tuple(found)


def _told(column: str, values: Iterable[object]) -> str:
    if column == "size":
        return "/".join(format_size(int(str(value))) for value in sorted(values, key=str))
    return "/".join(sorted(map(str, values))) or "none"


def _near_names(old: dict[Key, list[Row]], new: dict[Key, list[Row]]) -> list[tuple[str, _Differs]]:
    """Take out the cases of one side that the other has nearly: by name they are other work."""
    found = []
    for key, rows in list(old.items()):
        by_distance = [
            (sum(rows[0][c] != others[0][c] for c in NAME_COLUMNS), other)
            for other, others in new.items()
        ]
        if not by_distance:
            break
        distance, nearest = min(by_distance)
        if distance <= NEAR_NAMES and rows[0]["kernel"] == new[nearest][0]["kernel"]:
            found.append((key[0], _differing(_NAMES, old.pop(key), new.pop(nearest))))
    return found


def _gathered(refused: Iterable[tuple[str, _Differs]]) -> list[Refusal]:
    """One refusal for all cases that differ in the same way."""
    found: dict[_Differs, list[str]] = {}
    for case, differs in refused:
        found.setdefault(differs, []).append(case)
    return [Refusal(tuple(cases), differs) for differs, cases in found.items()]
