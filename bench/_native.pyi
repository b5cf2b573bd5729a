"""What mypy may know of the extension; its types live in csrc/pagestorm.h."""

from typing import Any

ffi: Any
lib: Any
