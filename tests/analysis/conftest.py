import json
from pathlib import Path
from typing import Any

import pytest

REFERENCE = Path(__file__).parents[1] / "reference" / "cases.json"


@pytest.fixture(scope="session")
def cases() -> dict[str, Any]:
    """Published inputs and results, keyed by case id; each names its source."""
    return json.loads(REFERENCE.read_text(encoding="utf-8"))
