"""spmv multiplies as scipy and whole numbers do, and its matrices have the shape they promise."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from bench import inputs, native
from bench.errors import UsageError
from bench.mix import Actor, FileRef

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from sha256_rows import block

ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
R = 2**256
VALUES = ("f64", "fr", "pattern", "pattern_fr")
COLUMNS = [{"columns": c} for c in ("banded", "uniform")] + [{"matrix": m} for m in "abc"]
BLOCK_ROWS, BLOCK_VARIABLES, INPUTS = 26192, 26166, 768


def spmv(variant="scalar", threads=1, size=1 << 20, pace=0.0, **params):
    return Actor("spmv", variant, "base", threads, size, tuple(params.items()), pace=pace)


def variants():
    return [variant.name for variant in native.kernel("spmv").variants if variant.available]


class Product:
    """Arrays of one run as numpy has them."""

    def __init__(self, once):
        def array(name, dtype, width=1):
            found = np.frombuffer(once.arrays[name][0], dtype)
            return found.reshape(-1, width) if width > 1 else found

        self.work = once.work
        self.start, self.column = array("start", "<u4"), array("column", "<u4")
        self.value, self.x, self.y = (array(name, "<f8") for name in ("value", "x", "y"))
        self.value_fr, self.x_fr, self.y_fr = (
            array(name, "<u8", 4) for name in ("value_fr", "x_fr", "y_fr")
        )
        self.n_cols = max(len(self.x), len(self.x_fr))

    def matrix(self, values):
        shape = (len(self.start) - 1, self.n_cols)
        parts = (values, self.column.astype(np.int64), self.start.astype(np.int64))
        return scipy.sparse.csr_array(parts, shape=shape)

    def rows(self):
        return np.split(self.column, self.start[1:-1])


def whole(limbs):
    """Python integers of rows of four 64-bit limbs."""
    return [int.from_bytes(row.tobytes(), "little") for row in limbs]


# ---- products ------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("values", ["f64", "pattern"])
def test_products_in_double_precision_are_exactly_scipy_s(values, columns):
    for variant in variants():
        for threads, chunk, prefetch in ((1, 8192, "none"), (2, 100, "auto"), (3, 1000, "none")):
            run = spmv(variant, threads, values=values, chunk=chunk, prefetch=prefetch, **columns)
            product = Product(native.run_once(run, 2))
            ones = np.ones(len(product.column))
            matrix = product.matrix(product.value if values == "f64" else ones)
            assert np.array_equal(matrix @ product.x, product.y), (variant, threads)


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("values", ["fr", "pattern_fr"])
def test_products_of_field_elements_are_exactly_those_of_whole_numbers(values, columns):
    """In Montgomery form a stands for a / R, so that a product is a b / R."""
    expected = None
    for variant in variants():
        for threads, chunk, prefetch in ((1, 8192, "auto"), (3, 100, "streams")):
            run = spmv(variant, threads, values=values, chunk=chunk, prefetch=prefetch, **columns)
            product = Product(native.run_once(run, 2))
            if expected is None:
                x, inverse = whole(product.x_fr), pow(R, -1, ORDER)
                a = whole(product.value_fr) or [R % ORDER] * len(product.column)
                assert max(x) < ORDER
                assert max(a) < ORDER
                column, start = product.column.tolist(), product.start.tolist()
                expected = [
                    sum(a[k] * x[column[k]] for k in range(first, last)) * inverse % ORDER
                    for first, last in itertools.pairwise(start)
                ]
            assert whole(product.y_fr) == expected, (variant, threads)


def test_pacing_changes_no_result():
    for values in VALUES:
        plain, paced = (
            native.run_once(spmv(values=values, pace=pace)).arrays for pace in (0.0, 5e9)
        )
        assert plain == paced


# ---- matrices ------------------------------------------------------------------------------------


@pytest.mark.parametrize("matrix", "abc")
def test_the_first_block_is_the_circuit_s_row_by_row(matrix):
    product = Product(native.run_once(spmv(size=4 << 20, matrix=matrix), check=False))
    rows = product.rows()
    assert len(rows) > BLOCK_ROWS
    index = "abc".index(matrix)
    for row, want in zip(rows, block().rows, strict=False):
        assert row.tolist() == sorted(want[index])


@pytest.mark.parametrize("matrix", "abc")
def test_later_blocks_repeat_the_first_further_on(matrix):
    """Variables of the block move on with it; the state comes from the block before, the message
    from one run of 256 variables a half, within the last 20 blocks."""
    product = Product(native.run_once(spmv(size=16 << 20, matrix=matrix), check=False))
    rows, index, output = product.rows(), "abc".index(matrix), block().output
    n_blocks = len(rows) // BLOCK_ROWS
    assert n_blocks >= 3
    for b in range(1, n_blocks):
        bases = [set(), set()]
        for i, want in enumerate(block().rows):
            row = rows[b * BLOCK_ROWS + i].tolist()
            for column, local in zip(row, sorted(want[index]), strict=True):
                if local > INPUTS:
                    assert column == local + b * BLOCK_VARIABLES
                elif local > 512:
                    assert column == output[local - 513] + (b - 1) * BLOCK_VARIABLES
                elif local > 0:
                    bases[(local - 1) // 256].add(column - (local - 1) % 256)
                else:
                    assert column == 0
        newest = INPUTS + b * BLOCK_VARIABLES
        for base in bases:
            assert len(base) == 1
            assert max(1, newest - 21 * BLOCK_VARIABLES) <= min(base) <= newest - 255


def test_the_prover_s_rows_have_the_published_lengths_and_distances():
    """Shares of rows by length and of entries by distance behind the newest variable."""
    lengths = {
        "a": (0.0, 0.602, 0.319, 0.078, 0.001),
        "b": (0.0, 1.0, 0.0, 0.0, 0.0),
        "c": (0.241, 0.078, 0.156, 0.524, 0.001),
    }
    distances = {  # one, < 2, < 64, < 256, < 1 K, < 4 K, < 16 K, < 64 K
        "a": (0.104, 0.137, 0.172, 0.020, 0.312, 0.179, 0.016, 0.013),
        "b": (0.001, 0.241, 0.195, 0.290, 0.147, 0.077, 0.0, 0.0),
        "c": (0.0, 0.380, 0.271, 0.094, 0.157, 0.066, 0.0, 0.0),
    }
    newest = np.array([row[3] for row in block().rows])
    for matrix in "abc":
        product = Product(native.run_once(spmv(size=16 << 20, matrix=matrix), check=False))
        length = np.diff(product.start.astype(np.int64))[:BLOCK_ROWS]
        counts = [(length == n).mean() for n in range(4)] + [(length > 3).mean()]
        assert counts == pytest.approx(lengths[matrix], abs=0.002)
        column = product.column[: length.sum()].astype(np.int64)
        behind = np.repeat(newest, length) - column
        behind[column <= INPUTS] = -1
        edges = (0, 2, 64, 256, 1024, 4096, 16384, 65536)
        shares = [(column == 0).mean()] + [
            ((low <= behind) & (behind < high)).mean() for low, high in itertools.pairwise(edges)
        ]
        assert shares == pytest.approx(distances[matrix], abs=0.002)


@pytest.mark.parametrize("nnz_row", [1, 3, 32, 100])
def test_banded_columns_stay_in_the_window_around_the_diagonal(nnz_row):
    band = 128
    product = Product(native.run_once(spmv(columns="banded", nnz_row=nnz_row, band=band)))
    n = len(product.start) - 1
    assert len(product.x) == n
    assert (np.diff(product.start.astype(np.int64)) == nnz_row).all()
    column = product.column.reshape(n, nnz_row).astype(np.int64)
    first = np.clip(np.arange(n) - band // 2, 0, n - band)
    assert (column >= first[:, None]).all()
    assert (column < first[:, None] + band).all()
    assert (np.diff(column, axis=1) > 0).all()
    # All of the window is used alike.
    offsets = np.bincount((column - first[:, None]).ravel(), minlength=band)
    assert offsets.min() > 0.5 * offsets.mean()


def test_uniform_columns_are_anywhere():
    product = Product(native.run_once(spmv(columns="uniform", size=4 << 20)))
    n = len(product.start) - 1
    column = product.column.reshape(n, 32).astype(np.int64)
    assert (np.diff(column, axis=1) > 0).all()
    used = np.bincount(product.column, minlength=n)
    assert used.mean() == 32
    assert used.var() == pytest.approx(32, rel=0.1)
    # Neighbouring rows have nothing to do with each other.
    assert abs(np.corrcoef(column[:-1, 5], column[1:, 5])[0, 1]) < 0.05


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("columns", COLUMNS, ids=str)
def test_data_depend_on_the_seed_alone(values, columns):
    run = {"values": values, "size": 400_000, **columns}
    first = native.run_once(spmv(**run)).arrays
    for threads, chunk in ((2, 8192), (3, 77)):
        arrays = native.run_once(spmv(threads=threads, chunk=chunk, **run)).arrays
        assert {**arrays, "tile": first["tile"]} == first
    other = native.run_once(spmv(**run), seed=2).arrays
    assert other["start"] == first["start"]
    x = "x_fr" if values.endswith("fr") else "x"
    assert other[x] != first[x]
    if "columns" in columns:
        assert other["column"] != first["column"]


# ---- figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["cold", "warm"])
@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("values", VALUES)
def test_bytes_are_those_of_the_accesses_of_a_pass(values, columns, output):
    once = native.run_once(spmv(values=values, output=output, **columns))
    product, work = Product(once), once.work
    element = 32 if values.endswith("fr") else 8
    rows = len(product.start) - 1
    entries = int(product.start[-1])
    assert entries == len(product.column)
    streams = sum(len(once.arrays[n][0]) for n in ("start", "column", "value", "value_fr"))
    assert work["read_bytes"] == streams + element * entries
    assert work["written_bytes"] == element * rows
    assert work["updated_bytes"] == 0
    assert work["ops"] == entries
    lines = len(np.unique(product.column.astype(np.int64) * element // 64))
    stored = 2 * element * rows
    least = streams + 64 * lines + (stored if output == "cold" else 0)
    assert work["bus_min_bytes"] == least
    assert work["bus_max_bytes"] == streams + 64 * entries + stored
    assert work["n_steps"] == -(-rows // 8192)


def test_warm_output_is_one_chunk_a_thread():
    cold = native.run_once(spmv(threads=2, chunk=500))
    warm = native.run_once(spmv(threads=2, chunk=500, output="warm"))
    assert [len(part) for part in cold.arrays["tile"]] == [0, 0]
    assert [len(part) for part in warm.arrays["tile"]] == [4000, 4000]
    assert [len(part) for part in warm.arrays["y"]] == [0]


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("values", VALUES)
def test_arrays_use_the_size_and_fit_it(values, columns):
    for size in (300_000, 5 << 20):
        used = native.footprint(spmv(size=size, values=values, **columns)).used[0]
        # One more row could be one of a thousand entries.
        assert size - 6 * 4096 - 1000 * 68 < used <= size


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"columns": "banded", "matrix": "b"}, "matrix belongs to columns=prover"),
        ({"nnz_row": 3}, "nnz_row belongs to columns=banded and uniform"),
        ({"columns": "uniform", "band": 3}, "band belongs to columns=banded"),
        ({"columns": "banded", "band": 31}, "cannot hold 32 entries"),
        ({"size": 10_000}, "at least"),
        ({"columns": "uniform", "nnz_row": 1, "size": 1 << 38}, "too many for 4 B"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(params, reason):
    with pytest.raises(UsageError, match=reason):
        native.footprint(spmv(**params))


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("values", VALUES)
def test_the_smallest_size_named_in_a_refusal_is_enough(values, columns):
    params = {"values": values, **columns}
    with pytest.raises(UsageError) as refused:
        native.footprint(spmv(size=1000, **params))
    least = int(str(refused.value).split()[-2])
    native.run_once(spmv(size=least, **params))
    with pytest.raises(UsageError):
        native.footprint(spmv(size=least - 1, **params))


# ---- a user's matrix -----------------------------------------------------------------------------


@pytest.fixture
def user(tmp_path, monkeypatch):
    """Writes a matrix as Matrix Market and gives its reference."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def write(matrix, **kind):
        path = tmp_path / "m.mtx"
        scipy.io.mmwrite(path, scipy.sparse.coo_array(matrix), precision=17, **kind)
        return inputs.read_input(path)

    return write


def random_matrix(shape=(500, 300), whole=True):
    rng = np.random.default_rng(3)
    matrix = scipy.sparse.random_array(shape, density=0.05, rng=rng, format="csr")
    matrix.data = np.rint(matrix.data * 2000 - 1000) if whole else rng.standard_normal(matrix.nnz)
    matrix.eliminate_zeros()
    return matrix


def test_a_user_s_whole_numbers_multiply_exactly(user):
    matrix = random_matrix()
    file = user(matrix)
    for variant in variants():
        product = Product(native.run_once(spmv(variant, 2, chunk=64, matrix_file=file)))
        assert (product.matrix(product.value) != matrix).nnz == 0
        assert np.array_equal(matrix @ product.x, product.y)
        run = spmv(variant, 2, values="fr", chunk=64, matrix_file=file)
        product = Product(native.run_once(run))
        x = whole(product.x_fr)
        rows = zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
        assert whole(product.y_fr) == [
            sum(int(matrix.data[k]) * x[matrix.indices[k]] for k in range(a, b)) % ORDER
            for a, b in rows
        ]


def test_a_user_s_real_numbers_multiply_as_well_as_rounding_allows(user):
    matrix = random_matrix((400, 400), whole=False)
    file = user(matrix)
    for variant in variants():
        product = Product(native.run_once(spmv(variant, matrix_file=file)))
        bound = np.abs(matrix) @ np.abs(product.x) * 2.0**-52 * 40
        assert (np.abs(matrix @ product.x - product.y) <= bound).all()
    with pytest.raises(UsageError, match="values=fr needs whole numbers"):
        native.footprint(spmv(values="fr", matrix_file=file))


def test_rows_whose_sum_is_no_number_are_not_called_wrong(user):
    matrix = random_matrix((100, 100), whole=False).tolil()
    matrix[7, 3:9] = [1e308, -1e308, 1e308, 1e308, -1e308, -1e308]
    matrix[50, 0:2] = [-1e308, 1e308]
    file = user(matrix.tocsr())
    for variant in variants():
        y = Product(native.run_once(spmv(variant, matrix_file=file))).y
        assert np.isfinite(np.delete(y, [7, 50])).all()


def test_a_user_s_pattern_has_ones_in_every_kind_of_values(user):
    matrix = random_matrix()
    matrix.data[:] = 1
    file = user(matrix, field="pattern")
    for values in ("f64", "pattern"):
        product = Product(native.run_once(spmv(values=values, matrix_file=file)))
        assert np.array_equal(matrix @ product.x, product.y)
    products = [
        Product(native.run_once(spmv(values=values, matrix_file=file))).y_fr
        for values in ("fr", "pattern_fr")
    ]
    assert np.array_equal(*products)


def test_a_symmetric_matrix_is_multiplied_whole(user):
    matrix = random_matrix((200, 200))
    matrix = matrix + matrix.T
    product = Product(native.run_once(spmv(matrix_file=user(matrix, symmetry="symmetric"))))
    assert np.array_equal(matrix @ product.x, product.y)


def test_a_matrix_from_a_file_needs_its_size_and_no_shape(user):
    file = user(random_matrix())
    with pytest.raises(UsageError, match="this matrix needs") as refused:
        native.footprint(spmv(size=50_000, matrix_file=file))
    least = int(str(refused.value).split("needs ")[1].split()[0])
    native.run_once(spmv(size=least, matrix_file=file))
    for name, value in {"columns": "banded", "nnz_row": 3, "matrix": "b"}.items():
        with pytest.raises(UsageError, match=f"{name} belongs to generated matrices"):
            native.footprint(spmv(matrix_file=file, **{name: value}))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-1], "bytes, not"),
        (lambda data: b"x" + data[1:], "no converted matrix"),
        (lambda data: data[:20], "no converted matrix"),
        (lambda data: data[:16] + b"\xff" * 8 + data[24:], "sizes are not from 1"),
    ],
)
def test_a_damaged_file_is_refused(user, tmp_path, damage, reason):
    data = Path(user(random_matrix()).path).read_bytes()
    broken = tmp_path / "broken"
    broken.write_bytes(damage(data))
    with pytest.raises(UsageError, match=reason):
        native.footprint(spmv(matrix_file=FileRef("0", str(broken))))


@pytest.mark.parametrize("at", ["start", "column"])
def test_a_file_that_points_outside_is_refused_before_it_is_used(user, tmp_path, at):
    data = bytearray(Path(user(random_matrix()).path).read_bytes())
    offset = 64 + 4 * 100 if at == "start" else 64 + -(-4 * 501 // 64) * 64 + 4 * 100
    data[offset : offset + 4] = b"\xff" * 4
    broken = tmp_path / "broken"
    broken.write_bytes(bytes(data))
    with pytest.raises(native.RunFailedError, match=f"is broken: {at}"):
        native.run_once(spmv(matrix_file=FileRef("0", str(broken))))
