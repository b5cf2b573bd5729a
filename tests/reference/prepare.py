"""What prep leaves behind, computed from its inputs with numpy on whole arrays.

Written from the words of the two sweeps: a scalar is full when it is neither zero nor one; A and B
hold the scalars whose density bit is set; tails hold the full ones of each and their points.
"""

import numpy as np

ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
ONE = np.frombuffer((2**256 % ORDER).to_bytes(32, "little"), "<u8")


def words(data):
    return np.frombuffer(data, "<u8")


def bits(data, n):
    """First n bits of bitmap words, lowest bit of each word first."""
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little", count=n).astype(bool)


def packed(flags):
    """Bitmap words of flags, zero behind the end."""
    padded = np.zeros(-(-len(flags) // 64) * 64, bool)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view("<u8")


class Prepared:
    """Inputs of one run by name, and everything that follows from them."""

    def __init__(self, arrays):
        inputs = {name: rows[0] for name, rows in arrays.items()}
        self.aux = words(inputs["aux"]).reshape(-1, 4)
        n = len(self.aux)
        density = inputs["density"]
        half = len(density) // 2
        everything = np.ones(n, bool)
        self.member = {"l": everything, "a": bits(density[:half], n), "b": bits(density[half:], n)}
        self.zero = ~self.aux.any(axis=1)
        self.one = (self.aux == ONE).all(axis=1)
        self.full = ~self.zero & ~self.one
        self.points = {
            name: words(inputs[name]).reshape(-1, 24 if name == "point_b2" else 12)
            for name in ("point_l", "point_a", "point_b1", "point_b2")
        }

    def bitmaps(self, flags):
        """One bitmap a vector, each from a multiple of 8 words on."""
        parts = []
        for member in self.member.values():
            part = packed(flags[member])
            parts.append(np.concatenate((part, np.zeros(-len(part) % 8, "<u8"))))
        return np.concatenate(parts)

    def tails(self):
        """Scalars, points in G1, points in G2."""
        scalars, g1 = [], []
        for vector, points in (("l", "point_l"), ("a", "point_a"), ("b", "point_b1")):
            member = self.member[vector]
            scalars.append(self.aux[member & self.full])
            g1.append(self.points[points][self.full[member]])
        g2 = self.points["point_b2"][self.full[self.member["b"]]]
        return np.concatenate(scalars), np.concatenate(g1), g2

    def useful_bytes(self):
        """Bytes read and written by both sweeps and the merge between them, counted by array."""
        n = len(self.aux)
        maps = sum(8 * -(-int(member.sum()) // 64) for member in self.member.values())
        scalars, g1, g2 = self.tails()
        classify = 32 * n + 2 * n // 8, maps
        merge = maps, maps
        fill = (
            32 * n + 2 * n // 8 + maps + g1.nbytes + g2.nbytes,
            maps + scalars.nbytes + g1.nbytes + g2.nbytes,
        )
        return tuple(sum(pass_[i] for pass_ in (classify, merge, fill)) for i in (0, 1))

    def point_lines(self):
        """Lines of the tails' points: all different ones, and summed over points."""
        distinct = each = 0
        for vector, name in (
            ("l", "point_l"),
            ("a", "point_a"),
            ("b", "point_b1"),
            ("b", "point_b2"),
        ):
            size = self.points[name].shape[1] * 8
            used = [
                set(range(i * size // 64, (i * size + size - 1) // 64 + 1))
                for i in np.flatnonzero(self.full[self.member[vector]])
            ]
            distinct += len(set().union(*used))
            each += sum(map(len, used))
        return distinct, each
