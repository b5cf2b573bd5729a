"""What scan leaves behind, computed pass by pass with numpy, and its accesses counted one by one.

Written from the words of the op, not from the C sources' closed forms.
"""

import numpy as np

# op: (one statement on whole arrays, scale of pass p)
STATEMENTS = {
    "write": (lambda x, s: x.store("a", s + 0 * x.index), lambda p: float(p % 251 + 1)),
    "copy": (lambda x, s: x.store("a", x.load("b")), None),
    "triad": (lambda x, s: x.store("a", x.load("b") + s * x.load("c")), lambda p: 2.0 + p % 2),
    "vtriad": (lambda x, s: x.store("a", x.load("b") + x.load("c") * x.load("d")), None),
    "update": (
        lambda x, s: x.store("a", s * x.load("a")),
        lambda p: -2.0 if p % 1024 < 512 else -0.5,
    ),
    "daxpy": (lambda x, s: x.store("a", x.load("a") + s * x.load("b")), lambda p: 2.0),
    "libc_copy": (lambda x, s: x.store("a", x.load("b")), None),
    "libc_set": (
        lambda x, s: x.store("a", np.full(len(x.index) * 8, int(s), np.uint8).view(np.float64)),
        lambda p: p % 251 + 1,
    ),
    "read": (lambda x, s: x.load("u"), None),
}


def splitmix(seed, counters):
    """Random bits of each counter: the generator's published finaliser, in numpy."""
    with np.errstate(over="ignore"):
        x = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * (counters + np.uint64(1))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Arrays:
    """Arrays of one thread, with a count of the bytes each statement loads and stores."""

    def __init__(self, op, n, thread, seed):
        self.index = np.arange(n, dtype=np.uint64)
        position = self.index + np.uint64(thread * n)
        self.loaded, self.stored = set(), set()
        self.contents = {
            name: (splitmix(seed + k, position) % np.uint64(256) + np.uint64(1)).astype(float)
            for k, name in enumerate("uabcd")
        }
        with np.errstate(over="ignore"):
            step = splitmix(seed, np.uint64(0)) | np.uint64(1)
            self.contents["u"] = splitmix(seed, np.uint64(1)) + position * step
        if op not in ("update", "daxpy"):
            self.contents["a"] = np.full(n, -1.0)

    def load(self, name):
        self.loaded |= {(name, int(i)) for i in self.index}
        return self.contents[name]

    def store(self, name, values):
        self.stored |= {(name, int(i)) for i in self.index}
        self.contents[name] = values


def after_passes(op, n, thread, seed, passes):
    """Arrays after that many passes, each pass a statement on whole arrays."""
    arrays = Arrays(op, n, thread, seed)
    statement, scale = STATEMENTS[op]
    for p in range(passes):
        statement(arrays, scale(p) if scale else None)
    return arrays


def useful_bytes(op, n):
    """Bytes only read, only written, and both, counted from the accesses of one pass."""
    arrays = after_passes(op, n, 0, 1, 1)
    read, written = arrays.loaded, arrays.stored
    return 8 * len(read - written), 8 * len(written - read), 8 * len(read & written)
