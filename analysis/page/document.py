"""A page as JSON, versioned: the same sections, tables and curves as the HTML page.

``format`` and ``version``; ``title``; ``overview``, blocks; ``hosts``, each with ``name``,
``summary``, ``verdict``, ``answers`` and ``sections``. A section has ``id``, ``title``, ``lead``,
``sources`` (name, command, digest) and ``blocks``. A block says what it is in ``kind``, and has the
fields of the class of that name in `analysis.page.model`: ``table``, ``matrix``, ``charts``,
``facts``, ``listing``, ``items``, ``commands``, ``text``. What is no number is null.
"""

import math
from dataclasses import fields, is_dataclass
from typing import Any

from analysis.page.model import Block, Page

FORMAT = "pagestorm report"
VERSION = 1
"""Goes up when a field changes its meaning or goes away, not for new fields and kinds."""


def as_document(page: Page) -> dict[str, Any]:
    """Turn a page into JSON data."""
    return {"format": FORMAT, "version": VERSION, **_plain(page)}


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON data
    if is_dataclass(value) and not isinstance(value, type):
        data = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__.lower(), **data} if isinstance(value, Block) else data
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
