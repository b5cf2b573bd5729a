"""A bucket pass described step by step: digits, tiles, sums of lanes, and every byte it touches."""

import numpy as np

SCALAR_BITS = 255

GRIDS = {
    # threads: (slices, windows, window bits) for 2^20 <= n < 2^21
    1: (1, 15, 17),
    2: (1, 15, 18),
    4: (1, 16, 16),
    8: (1, 18, 15),
    16: (1, 16, 16),
    32: (1, 16, 16),
    64: (3, 19, 14),
    96: (5, 19, 14),
    128: (6, 20, 13),
    192: (9, 20, 13),
}
"""As published for a prover's library."""


def digit(scalar, bit, bits):
    return scalar >> bit & ((1 << bits) - 1)


class Tile:
    """Points [first, last) and bits [bit, bit + bits) of their scalars."""

    def __init__(self, first, last, bit, bits):
        self.first, self.last, self.bit, self.bits = first, last, bit, bits

    def digits(self, scalars):
        return [digit(scalar, self.bit, self.bits) for scalar in scalars[self.first : self.last]]


def tiles(n, slices, windows, window):
    """In the order of the tickets: the top window first."""
    for row in reversed(range(windows)):
        for k in range(slices):
            last = n if k + 1 == slices else n // slices * (k + 1)
            bits = min(window, SCALAR_BITS - row * window)
            yield Tile(n // slices * k, last, row * window, bits)


def lane_sum(tile, scalars, lanes):
    """What a tile adds up to where a point is a row of 64-bit lanes."""
    digits = np.array(tile.digits(scalars), dtype=np.uint64)
    with np.errstate(over="ignore"):
        return (digits[:, None] * lanes[tile.first : tile.last]).sum(axis=0, dtype=np.uint64)


def fold(sums, slices, window):
    """Rows from the top one on; each step down weighs what is above by 2^window + 1."""
    total = np.zeros_like(sums[0])
    with np.errstate(over="ignore"):
        for row in range(0, len(sums), slices):
            total = total * np.uint64((1 << window) + 1)
            for part in sums[row : row + slices]:
                total = total + part
    return total


def useful_bytes(scalars, grid, point, bucket):
    """(read, written, updated) of a pass, access by access."""
    quarter = bucket // 4
    read = written = 32 * len(scalars)  # out of Montgomery form
    updated = 0
    for tile in tiles(len(scalars), *grid):
        used = set()
        for value in tile.digits(scalars):
            read += len({(tile.bit + k) // 8 for k in range(tile.bits)})
            if value == 0:
                continue
            read += point
            if value in used:
                updated += bucket
            else:
                updated += quarter  # zz says that it is empty
                written += 3 * quarter
                used.add(value)
        for value in range(1, 1 << tile.bits):
            if value in used:
                read += 2 * quarter
                updated += 2 * quarter
            else:
                updated += quarter
                written += quarter
        written += bucket  # the tile's sum
        read += bucket  # which is folded
    return read, written + bucket, updated
