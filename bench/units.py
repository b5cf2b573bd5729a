"""Sizes and durations as people write them. KiB/MiB/GiB are powers of 1024."""

import re

from bench.errors import UsageError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]i?)?[bB]?\s*$")
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|m|min|h)?\s*$")
_CLOCK = re.compile(r"^\s*(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?\s*$")
_EXPONENT = {"k": 1, "m": 2, "g": 3, "t": 4}
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    None: 1.0,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
}


def parse_size(text: str) -> int:
    """Bytes of ``64MiB``, ``64M`` or ``64m`` (all binary), or ``4096``. ``MB`` is binary too."""
    match = _SIZE.match(text)
    if match is None:
        raise UsageError(f"not a size: {text!r}", "write a number of bytes, or 64KiB, 256MiB, 1GiB")
    unit = match[2]
    # In whole numbers: a float is off by some bytes from 8 PiB on.
    whole, _, digits = match[1].partition(".")
    scaled = int(whole + digits) * (1024 ** _EXPONENT[unit[0].lower()] if unit else 1)
    n_bytes, rest = divmod(scaled, int(10 ** len(digits)))
    if rest:
        raise UsageError(f"not a whole number of bytes: {text!r}")
    return n_bytes


def format_size(n_bytes: int) -> str:
    """Shortest exact form: ``1GiB``, ``1536MiB``, ``4160B``. ``parse_size`` reads it back."""
    for exponent, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if n_bytes and n_bytes % 1024**exponent == 0:
            return f"{n_bytes // 1024**exponent}{unit}"
    return f"{n_bytes}B"


def counted(n: int, what: str) -> str:
    """``1 thread``, ``2 threads``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def about(n_bytes: int, up: bool = False) -> str:
    """Size with two or three digits: ``5.7GiB``; rounded down, or up to whole units."""
    for exponent, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        scale = 1024**exponent
        if n_bytes >= scale:
            if up:
                return f"{-(-n_bytes // scale)}{unit}"
            whole = n_bytes % scale == 0 or n_bytes >= 10 * scale
            return f"{n_bytes // scale}{unit}" if whole else f"{n_bytes * 10 // scale / 10}{unit}"
    return f"{n_bytes}B"


def parse_duration(text: str) -> float:
    """Seconds of ``500ms``, ``5s``, ``2m``, ``1h05m`` or a bare number of seconds."""
    match = _DURATION.match(text)
    if match is None:
        clock = _CLOCK.match(text)
        if clock is not None and text.strip():
            hours, minutes, seconds = (int(part or 0) for part in clock.groups())
            return 3600.0 * hours + 60.0 * minutes + seconds
        raise UsageError(f"not a duration: {text!r}", "write 500ms, 30s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def format_duration(seconds: float) -> str:
    """Two significant parts at most: ``850ms``, ``12.5s``, ``3m20s``, ``1h05m``."""
    if seconds < 1:
        return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"
    if seconds < 60:
        return f"{seconds:.3g}s"
    if seconds < 3600:
        return f"{int(seconds) // 60}m{int(seconds) % 60:02d}s"
    return f"{int(seconds) // 3600}h{int(seconds) % 3600 // 60:02d}m"


def natural(text: str) -> list[str | int]:
    """Key that sorts numbers inside a text by value: ``2t`` before ``10t``."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"([0-9]+)", text))]
