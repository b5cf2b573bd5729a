"""BLS12-381 in Python integers: both fields, both groups, and sums of multiples by bit planes.

Written from the published parameters; shares no formula and no constant with the C sources. Points
are affine pairs of field elements, ``None`` is infinity. Elements of Fp are integers, of Fp2 pairs.
"""

P = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf"
    "6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
    16,
)
R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
FP_SHIFT, FR_SHIFT = 1 << 384, 1 << 256
"""What Montgomery forms are multiplied by."""


class Fp:
    """Field operations on integers below P."""

    words = 6
    zero, one = 0, 1

    @staticmethod
    def add(a, b):
        return (a + b) % P

    @staticmethod
    def sub(a, b):
        return (a - b) % P

    @staticmethod
    def mul(a, b):
        return a * b % P

    @staticmethod
    def inverse(a):
        return pow(a, -1, P) if a else 0

    @staticmethod
    def read(raw):
        """Element from its Montgomery form in memory."""
        return int.from_bytes(raw, "little") * pow(FP_SHIFT, -1, P) % P

    @staticmethod
    def write(a):
        return (a * FP_SHIFT % P).to_bytes(48, "little")


class Fp2:
    """Pairs (x, y) for x + y u with u^2 = -1."""

    words = 12
    zero, one = (0, 0), (1, 0)

    @staticmethod
    def add(a, b):
        return (a[0] + b[0]) % P, (a[1] + b[1]) % P

    @staticmethod
    def sub(a, b):
        return (a[0] - b[0]) % P, (a[1] - b[1]) % P

    @staticmethod
    def mul(a, b):
        return (a[0] * b[0] - a[1] * b[1]) % P, (a[0] * b[1] + a[1] * b[0]) % P

    @staticmethod
    def inverse(a):
        norm = Fp.inverse((a[0] * a[0] + a[1] * a[1]) % P)
        return a[0] * norm % P, -a[1] * norm % P

    @staticmethod
    def read(raw):
        return Fp.read(raw[:48]), Fp.read(raw[48:])

    @staticmethod
    def write(a):
        return Fp.write(a[0]) + Fp.write(a[1])


class Group:
    """Points of y^2 = x^3 + b over a field."""

    def __init__(self, name, field, b, generator):
        self.name, self.field, self.b, self.generator = name, field, b, generator
        self.point_bytes, self.bucket_bytes = 16 * field.words, 32 * field.words

    def holds(self, point):
        f = self.field
        return point is None or f.mul(point[1], point[1]) == f.add(
            f.mul(point[0], f.mul(point[0], point[0])), self.b
        )

    def negative(self, point):
        return None if point is None else (point[0], self.field.sub(self.field.zero, point[1]))

    def add(self, a, b):
        """Chord and tangent."""
        f = self.field
        if a is None or b is None:
            return b if a is None else a
        if a[0] == b[0]:
            if a != b or a[1] == f.zero:
                return None
            square = f.mul(a[0], a[0])
            slope = f.mul(f.add(square, f.add(square, square)), f.inverse(f.add(a[1], a[1])))
        else:
            slope = f.mul(f.sub(b[1], a[1]), f.inverse(f.sub(b[0], a[0])))
        x = f.sub(f.sub(f.mul(slope, slope), a[0]), b[0])
        return x, f.sub(f.mul(slope, f.sub(a[0], x)), a[1])

    def multiply(self, scalar, point):
        total = None
        for bit in bin(scalar)[2:]:
            total = self.add(total, total)
            if bit == "1":
                total = self.add(total, point)
        return total

    def sum_of_multiples(self, scalars, points):
        """Sum of s_i P_i by bit planes: no windows, no buckets. Points of one plane are added in
        pairs, round after round, with one inversion a round."""
        total = None
        for bit in reversed(range(max(scalars, default=0).bit_length())):
            total = self.add(total, total)
            plane = [q for s, q in zip(scalars, points, strict=True) if s >> bit & 1]
            total = self.add(total, self.sum_pairwise(plane))
        return total

    def sum_pairwise(self, points):
        points = [point for point in points if point is not None]
        while len(points) > 1:
            rest = points[len(points) // 2 * 2 :]
            pairs = list(zip(points[::2], points[1::2], strict=False))
            points = [q for q in self._add_pairs(pairs) if q is not None] + rest
        return points[0] if points else None

    def _add_pairs(self, pairs):
        f, products = self.field, [self.field.one]
        gaps = [f.sub(b[0], a[0]) for a, b in pairs]
        for gap in gaps:
            products.append(products[-1] if gap == f.zero else f.mul(products[-1], gap))
        inverse, sums = f.inverse(products[-1]), []
        for (a, b), gap, before in zip(
            reversed(pairs), reversed(gaps), reversed(products[:-1]), strict=True
        ):
            if gap == f.zero:
                sums.append(self.add(a, b))
                continue
            slope = f.mul(f.sub(b[1], a[1]), f.mul(inverse, before))
            inverse = f.mul(inverse, gap)
            x = f.sub(f.sub(f.mul(slope, slope), a[0]), b[0])
            sums.append((x, f.sub(f.mul(slope, f.sub(a[0], x)), a[1])))
        return sums

    def read_points(self, raw):
        """Points from memory: affine, Montgomery, all zero for infinity."""
        n, half = self.point_bytes, self.point_bytes // 2
        rows = [raw[i : i + n] for i in range(0, len(raw) // n * n, n)]
        return [
            (self.field.read(row[:half]), self.field.read(row[half:])) if any(row) else None
            for row in rows
        ]

    def write_points(self, points):
        return b"".join(
            bytes(self.point_bytes)
            if point is None
            else self.field.write(point[0]) + self.field.write(point[1])
            for point in points
        )

    def read_bucket(self, raw):
        """Point from x, y, zzz, zz: affine x is x / zz, y is y / zzz."""
        f, size = self.field, self.bucket_bytes // 4
        x, y, zzz, zz = (f.read(raw[i * size : (i + 1) * size]) for i in range(4))
        if zz == f.zero:
            return None
        assert f.mul(zzz, zzz) == f.mul(zz, f.mul(zz, zz))
        return f.mul(x, f.inverse(zz)), f.mul(y, f.inverse(zzz))

    def write_bucket(self, point, z):
        """The bucket of a point with zz = z^2, zzz = z^3; infinity keeps z as its x and y."""
        f = self.field
        if point is None:
            return f.write(z) * 2 + bytes(self.bucket_bytes // 2)
        zz = f.mul(z, z)
        zzz = f.mul(zz, z)
        parts = (f.mul(point[0], zz), f.mul(point[1], zzz), zzz, zz)
        return b"".join(f.write(part) for part in parts)


def read_scalars(raw, montgomery):
    """Scalars of 32 bytes."""
    numbers = [int.from_bytes(raw[i : i + 32], "little") for i in range(0, len(raw), 32)]
    return [s * pow(FR_SHIFT, -1, R) % R for s in numbers] if montgomery else numbers


def write_scalars(scalars):
    """Montgomery form."""
    return b"".join((s * FR_SHIFT % R).to_bytes(32, "little") for s in scalars)


G1 = Group(
    "g1",
    Fp,
    4,
    (
        0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
        0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
    ),
)
G2 = Group(
    "g2",
    Fp2,
    (4, 4),
    (
        (
            0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
            0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
        ),
        (
            0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
            0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
        ),
    ),
)
GROUPS = {"g1": G1, "g2": G2}
