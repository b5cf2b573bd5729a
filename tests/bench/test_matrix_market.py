"""Matrix Market files become the rows scipy reads from them; faults are said with their line."""

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from bench import inputs, matrix_market
from bench.errors import UsageError
from bench.matrix_market import HAS_VALUES, MAGIC, WHOLE

BANNER = "%%MatrixMarket matrix coordinate real general\n"


def write(path, text):
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def converted(path):
    """Rows, columns, flags, and the matrix as scipy has it."""
    out = io.BytesIO()
    matrix_market.convert(path, out)
    data = out.getvalue()
    magic = data[:16]
    n_rows, n_cols, nnz, flags, *rest = np.frombuffer(data, "<u8", 6, 16)
    assert (magic, rest) == (MAGIC, [0, 0])
    at = 64

    def take(dtype, count):
        nonlocal at
        array = np.frombuffer(data, dtype, count, at)
        at += -(-array.nbytes // 64) * 64 if dtype == "<u4" else array.nbytes
        return array

    starts, columns = take("<u4", int(n_rows) + 1), take("<u4", int(nnz))
    values = take("<f8", int(nnz)) if flags & HAS_VALUES else np.ones(int(nnz))
    assert at == len(data)
    matrix = scipy.sparse.csr_array(
        (values, columns.astype(np.int64), starts.astype(np.int64)),
        shape=(int(n_rows), int(n_cols)),
    )
    return matrix, int(flags)


def random_matrix(rng, shape, density=0.1):
    return scipy.sparse.random_array(shape, density=density, rng=rng)


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
@pytest.mark.parametrize(
    ("field", "symmetry"),
    [
        (field, symmetry)
        for field in ("real", "integer", "pattern")
        for symmetry in ("general", "symmetric", "skew-symmetric")
        if (field, symmetry) != ("pattern", "skew-symmetric")
    ],
)
def test_every_kind_becomes_what_scipy_reads(tmp_path, field, symmetry, suffix):
    rng = np.random.default_rng(1)
    matrix = random_matrix(rng, (70, 70) if symmetry != "general" else (70, 40))
    if symmetry != "general":
        matrix = matrix + (matrix.T if symmetry == "symmetric" else -matrix.T)
    matrix.data = np.sign(matrix.data) * np.ceil(np.abs(matrix.data) * 9) + (
        0.1 * np.sign(matrix.data) if field == "real" else 0
    )
    plain = tmp_path / "a.mtx"
    scipy.io.mmwrite(
        plain, scipy.sparse.coo_array(matrix), field=field, symmetry=symmetry, precision=17
    )
    path = write(tmp_path / f"b{suffix}", plain.read_text())
    found, flags = converted(path)
    want = scipy.io.mmread(plain).tocsr()
    assert (found != want).nnz == 0
    assert found.nnz == want.nnz
    assert bool(flags & HAS_VALUES) == (field != "pattern")
    assert bool(flags & WHOLE) == (field != "real")


def test_entries_in_any_order_comments_blank_lines_and_wide_spaces(tmp_path):
    text = (
        "%%MatrixMarket MATRIX Coordinate REAL General\n% a comment\n%\n\n  3 4   5\n\n3 1 1.5\n"
        "% in between\n  1\t4  -2e3 \n2 2 7\r\n1 1 1\n2 1 0.25"
    )
    found, flags = converted(write(tmp_path / "a.mtx", text))
    assert found.toarray().tolist() == [[1, 0, 0, -2000], [0.25, 7, 0, 0], [1.5, 0, 0, 0]]
    assert flags == HAS_VALUES


def test_columns_of_a_row_ascend_and_repeats_are_added(tmp_path):
    text = BANNER + "2 9 5\n1 9 1\n1 2 2\n1 5 3\n1 2 40\n2 1 1\n"
    found, _ = converted(write(tmp_path / "a.mtx", text))
    assert found.indices.tolist() == [1, 4, 8, 0]
    assert found.data.tolist() == [42, 3, 1, 1]


def test_a_pattern_that_repeats_an_entry_has_it_once(tmp_path):
    text = BANNER.replace("real", "pattern") + "2 2 3\n1 1\n2 2\n1 1\n"
    found, flags = converted(write(tmp_path / "a.mtx", text))
    assert found.toarray().tolist() == [[1, 0], [0, 1]]
    assert flags == WHOLE


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_blocks_of_text_may_end_anywhere(tmp_path, monkeypatch, block):
    monkeypatch.setattr(matrix_market, "_BLOCK_BYTES", block)
    rng = np.random.default_rng(2)
    matrix = random_matrix(rng, (30, 30), 0.3)
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, matrix, precision=17)
    found, _ = converted(path)
    assert (found != matrix.tocsr()).nnz == 0
    text = path.read_text().splitlines()
    text[40] += " x"
    with pytest.raises(UsageError, match="line 41 has 4 words, not 3"):
        converted(write(path, "\n".join(text)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1 does not begin with %%MatrixMarket"),
        ("1 1 1\n", "line 1 does not begin"),
        ("%%MatrixMarket matrix coordinate real\n1 1 1\n", "line 1 has 4 words, not 5"),
        (BANNER.replace("coordinate", "array") + "1 1\n1\n", "line 1 says matrix array"),
        (BANNER.replace("real", "complex") + "1 1 1\n1 1 1 1\n", "line 1 says complex entries"),
        (BANNER.replace("general", "hermitian") + "1 1 1\n1 1 1\n", "says real hermitian"),
        (
            BANNER.replace("general", "skew-symmetric").replace("real", "pattern") + "2 2 1\n2 1\n",
            "says pattern skew-symmetric",
        ),
        (BANNER, "ends before the size line"),
        (BANNER + "%\n3 3\n", "line 3 should hold rows, columns and entries: '3 3'"),
        (BANNER + "3 -3 1\n", "line 2 should hold"),
        (BANNER + "3 3 0\n", "line 2: the matrix is empty"),
        (BANNER + "5000000000 3 1\n", r"line 2: dimensions and entries must be below 2\^32"),
        (BANNER.replace("general", "symmetric") + "3 4 1\n1 1 1\n", "line 2: a symmetric matrix"),
        (BANNER + "3 3 2\n1 1 1\n0 1 1\n", "line 4: row 0 is not one of 1 to 3"),
        (BANNER + "3 3 2\n1 1 1\n1 4 1\n", "line 4: column 4 is not one of 1 to 3"),
        (BANNER + "3 3 2\n1 1 1\n% x\n\n1.5 1 1\n", "line 6: row 1.5 is not one of"),
        (BANNER + "3 3 2\n1 1 1\nnan 1 1\n", "line 4: row nan is not one of"),
        (BANNER + "3 3 2\n1 1 1\n1 2\n", "line 4 has 2 words, not 3"),
        (BANNER + "3 3 2\n1 1 1 1\n1\n", "line 3 has 4 words, not 3"),
        (BANNER + "3 3 2\n1 1 1\n1 2 z\n", "line 4: not a number: 'z'"),
        (BANNER + "3 3 2\n1 1 1\n1 2 1_0\n", "line 4: not a number: '1_0'"),
        (BANNER + "3 3 2\n1 1 1\n1 2 inf\n", "line 4: value inf is not finite"),
        (BANNER.replace("real", "integer") + "3 3 1\n1 1 1.5\n", "line 3: value 1.5 of an integer"),
        (BANNER + "3 3 3\n1 1 1\n1 2 1\n", "ends after 2 of the 3 entries of line 2"),
        (BANNER + "3 3 1\n1 1 1\n1 2 1\n", "line 4: more than the 1 entries of line 2"),
        (BANNER.replace("general", "symmetric") + "3 3 1\n1 2 1\n", "line 3: row 1, column 2: a"),
        (BANNER.replace("general", "skew-symmetric") + "3 3 1\n2 2 1\n", "line 3: row 2: a skew"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, reason):
    for name in ("a.mtx", "a.mtx.gz"):
        with pytest.raises(UsageError, match=reason) as caught:
            converted(write(tmp_path / name, text))
        assert name in str(caught.value)


def test_a_broken_archive_is_named(tmp_path):
    whole = gzip.compress(BANNER.encode() + b"3 3 1\n1 1 1\n" * 1000)
    (tmp_path / "a.mtx.gz").write_bytes(whole[:60])
    with pytest.raises(UsageError, match=r"a\.mtx\.gz: cannot be unpacked"):
        converted(tmp_path / "a.mtx.gz")
    with pytest.raises(UsageError, match="cannot read input file"):
        converted(tmp_path / "none.mtx")


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "A.MTX"])
def test_a_user_s_file_is_converted_once_into_the_cache(tmp_path, monkeypatch, name):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write(tmp_path / name, BANNER + "2 2 2\n1 1 4\n2 1 3\n")
    ref = inputs.read_input(path)
    assert (tmp_path / "cache" / "pagestorm" / "inputs").is_dir()
    assert Path(ref.path).read_bytes()[:16] == MAGIC
    assert inputs.read_input(path).path == ref.path


def _limited(path, n_bytes):
    """Convert in a process whose address space is limited."""
    code = (
        "import resource, io, sys; from pathlib import Path\n"
        "import scipy.sparse\n"
        "from bench import matrix_market; from bench.errors import UsageError\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({n_bytes}, {n_bytes}))\n"
        "try: matrix_market.convert(Path(sys.argv[1]), io.BytesIO())\n"
        "except UsageError as error: print(error)\n"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ("3 3 4000000000", "ends after 1 of the 4000000000 entries of line 2"),
        ("4000000000 3 1", "line 2: not enough memory"),
    ],
)
def test_a_size_line_that_promises_too_much_is_said_with_its_line(tmp_path, sizes, told):
    path = write(tmp_path / "a.mtx", f"{BANNER}{sizes}\n1 1 1\n")
    done = _limited(path, 4 << 30)
    assert told in done.stdout, done.stderr
    assert str(path) in done.stdout
