"""Small files of /proc and /sys. What is missing, masked or unreadable is None, never a guess."""

import os
from collections.abc import Iterable
from pathlib import Path


def read_text(path: Path) -> str | None:
    """Text of a kernel file without its last newline; None where it cannot be read."""
    try:
        return path.read_text(errors="replace").rstrip("\n")
    except OSError:
        return None


def entries(folder: Path, pattern: str = "*") -> list[Path]:
    """Sorted paths in a folder; empty where it is missing or may not be looked into."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; False too where that may not be known."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where a parent is closed


def exists(path: Path) -> bool:
    """Whether there is such a file; False too where that may not be known."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises where a parent is closed


def read_int(path: Path) -> int | None:
    """One whole number; None where the file is missing or holds something else."""
    text = read_text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def read_cpulist(path: Path) -> tuple[int, ...] | None:
    """CPU or node numbers of a list file; None where there is no such file or it is malformed."""
    text = read_text(path)
    try:
        return None if text is None else parse_cpulist(text)
    except ValueError:
        return None


def parse_cpulist(text: str) -> tuple[int, ...]:
    """Numbers of ``0-3,8,10-11``, rising. An empty list is valid: a node without CPUs has one."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        if part.strip():
            first, _, last = part.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def format_cpulist(numbers: Iterable[int]) -> str:
    """Shortest form that ``parse_cpulist`` reads back."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def bracketed(text: str | None) -> str | None:
    """Return the chosen word of ``always [madvise] never``; one bare word is chosen too."""
    if not text:
        return None
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return text if len(text.split()) == 1 else None


def keyed_kib(text: str | None, key: str) -> int | None:
    """Bytes of a ``MemAvailable:  123 kB`` row (also of ``Node 0 MemFree: 1 kB``)."""
    for line in (text or "").splitlines():
        label, colon, value = line.partition(":")
        if colon and label.split()[-1:] == [key]:
            words = value.split()
            if words and words[0].isdigit():
                return int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return None
