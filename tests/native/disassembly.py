"""Functions of an object file as objdump prints them, and their hot loops."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_HEADER = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\s(.*)$")
_JUMP = re.compile(r"^\t?(?:j\w+|b\.\w+|b|cbn?z|tbn?z)\s.*?\b([0-9a-f]+) <")


@dataclass(frozen=True)
class Function:
    """Instructions by address, in order."""

    instructions: tuple[tuple[int, str], ...]

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.instructions)

    @property
    def loops(self) -> tuple[tuple[str, ...], ...]:
        """Stretches that a jump goes back over and that have no smaller one inside."""
        first = self.instructions[0][0]
        jumps = ((address, _JUMP.match(line)) for address, line in self.instructions)
        found = [(int(match[1], 16), end) for end, match in jumps if match]
        backward = {(start, end) for start, end in found if first <= start <= end}
        innermost = [
            loop
            for loop in sorted(backward)
            if not any(loop[0] <= s and e <= loop[1] and (s, e) != loop for s, e in backward)
        ]
        return tuple(
            tuple(line for address, line in self.instructions if start <= address <= end)
            for start, end in innermost
        )

    @property
    def loop(self) -> tuple[str, ...]:
        """The longest of them, empty where there is none."""
        return max(self.loops, key=len, default=())

    @property
    def loop_text(self) -> str:
        return "\n".join(self.loop)


def functions(binary: Path, objdump: str = "objdump") -> dict[str, Function]:
    """Every function of the file, static ones included, by name."""
    done = subprocess.run(
        [objdump, "-d", "--no-show-raw-insn", str(binary)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[tuple[int, str]]] = {}
    name = ""
    for line in done.stdout.splitlines():
        if header := _HEADER.match(line):
            name = header[1]
            found[name] = []
        elif (match := _LINE.match(line)) and name:
            found[name].append((int(match[1], 16), "\t" + match[2].strip()))
    return {name: Function(tuple(lines)) for name, lines in found.items()}
