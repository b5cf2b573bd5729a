"""Constraint rows of one SHA-256 block on bits, gate by gate, as sets of columns.

Column 0 is the constant one, 1 to 512 the message, 513 to 768 the incoming state; every gate makes
new variables behind them. A model of what bit-level R1CS gadgets do, with coefficients left out.
"""

from dataclasses import dataclass, field
from functools import cache

FIELD_BITS = 254


@dataclass
class Block:
    """Rows as (columns of A, of B, of C, newest variable), and the bits of the outgoing state."""

    rows: list = field(default_factory=list)
    output: list = field(default_factory=list)
    newest: int = 0
    left: set = field(default_factory=set)
    right: set = field(default_factory=set)
    packed: int = 0

    def new(self):
        self.newest += 1
        return self.newest

    def row(self, a, b, c):
        self.rows.append((frozenset(a), frozenset(b), frozenset(c), self.newest))

    def xor(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        out = self.new()
        self.row({a}, {b}, {a, b, out})
        return out

    def choose(self, which, yes, no):
        out = self.new()
        self.row({yes, no}, {which}, {out, no})
        return out

    def majority(self, x, y, z):
        out, both = self.new(), self.new()
        self.row({y}, {z}, {both})
        self.row({both, y, z}, {x}, {both, out})
        return out

    def flush(self):
        self.row(self.left, {0}, self.right)
        self.left, self.right, self.packed = set(), set(), 0

    def add(self, words, constant=False):
        """Sums wait until they fill a field element, then share one row."""
        n_bits = ((len(words) + constant) * (2**32 - 1)).bit_length()
        bits = []
        for _ in range(n_bits):
            bit = self.new()
            self.row({0, bit}, {bit}, set())
            bits.append(bit)
        if self.packed + n_bits >= FIELD_BITS:
            self.flush()
        self.left |= {bit for word in words for bit in word if bit is not None}
        self.left |= {0} if constant else set()
        self.right |= set(bits)
        self.packed += n_bits
        return bits[:32]

    def xor_words(self, first, second):
        return [self.xor(a, b) for a, b in zip(first, second, strict=True)]


def rotated(word, by):
    return [word[(i + by) % 32] for i in range(32)]


def shifted(word, by):
    return [word[i + by] if i + by < 32 else None for i in range(32)]


@cache
def block():
    """All rows of one block."""
    b = Block()
    words = [[b.new() for _ in range(32)] for _ in range(16)]
    start = [[b.new() for _ in range(32)] for _ in range(8)]
    for i in range(16, 64):
        near, far = words[i - 2], words[i - 15]
        low = b.xor_words(b.xor_words(rotated(far, 7), rotated(far, 18)), shifted(far, 3))
        high = b.xor_words(b.xor_words(rotated(near, 17), rotated(near, 19)), shifted(near, 10))
        words.append(b.add([words[i - 16], low, words[i - 7], high]))
    s = [list(word) for word in start]
    next_a = next_e = None
    for word in words:
        if next_e is not None:
            s[4] = b.add(next_e, True)
        e = s[4]
        sigma1 = b.xor_words(b.xor_words(rotated(e, 6), rotated(e, 11)), rotated(e, 25))
        chosen = [b.choose(p, q, r) for p, q, r in zip(e, s[5], s[6], strict=True)]
        if next_a is not None:
            s[0] = b.add(next_a, True)
        a = s[0]
        sigma0 = b.xor_words(b.xor_words(rotated(a, 2), rotated(a, 13)), rotated(a, 22))
        most = [b.majority(p, q, r) for p, q, r in zip(a, s[1], s[2], strict=True)]
        common = [s[7], sigma1, chosen, word]
        next_e, next_a = [*common, s[3]], [*common, sigma0, most]
        s = [None, *s[:7]]
    b.output += b.add([*next_a, start[0]], True)
    for i in (1, 2, 3):
        b.output += b.add([start[i], s[i]])
    b.output += b.add([*next_e, start[4]], True)
    for i in (5, 6, 7):
        b.output += b.add([start[i], s[i]])
    b.flush()
    return b
