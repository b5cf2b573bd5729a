"""Users' files: named by contents, converted once, never half."""

import hashlib

import pytest

from bench import inputs
from bench.errors import PagestormError, UsageError
from bench.inputs import Converter, check_unchanged, files_of, read_input
from bench.mix import Actor, Mix


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pagestorm" / "inputs"


@pytest.fixture
def doubling(monkeypatch):
    """A text format whose binary is the text twice; counts its calls."""
    calls = []

    def convert(source, target):
        calls.append(source)
        text = source.read_bytes()
        target.write(text)
        if b"bad" in text:
            raise UsageError(f"{source}, line 1: not text")
        target.write(text)

    monkeypatch.setitem(inputs.CONVERTERS, ".txt", Converter(".txt", 3, convert))
    return calls


def written(path, data=b"some data"):
    path.write_bytes(data)
    return path


def test_a_raw_file_is_opened_where_it_is_and_named_by_its_contents(tmp_path, cache):
    path = written(tmp_path / "a.bin")
    ref = read_input(path)
    assert ref.digest == hashlib.sha256(b"some data").hexdigest()[:16]
    assert ref.path == str(path)
    assert read_input(written(tmp_path / "b.bin")).digest == ref.digest
    assert read_input(written(tmp_path / "c.bin", b"others")).digest != ref.digest
    assert not cache.exists()


def test_a_text_file_is_converted_once_whatever_its_name(tmp_path, cache, doubling):
    ref = read_input(written(tmp_path / "a.TXT"))
    again = read_input(written(tmp_path / "b.txt"))
    assert (ref.digest, ref.path) == (again.digest, again.path)
    assert ref.digest == hashlib.sha256(b"some data").hexdigest()[:16]
    assert [path.read_bytes() for path in cache.iterdir()] == [b"some datasome data"]
    assert len(doubling) == 1


def test_a_new_version_of_a_converter_leaves_old_files_alone(
    tmp_path, cache, doubling, monkeypatch
):
    old = read_input(written(tmp_path / "a.txt"))
    row = inputs.CONVERTERS[".txt"]
    monkeypatch.setitem(inputs.CONVERTERS, ".txt", Converter(".txt", 4, row.convert))
    assert read_input(tmp_path / "a.txt").path != old.path
    assert len(list(cache.iterdir())) == 2


def test_a_failed_conversion_leaves_nothing_behind(tmp_path, cache, doubling):
    with pytest.raises(UsageError, match="line 1"):
        read_input(written(tmp_path / "a.txt", b"bad"))
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said(tmp_path, doubling, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(written(tmp_path / "file")))
    with pytest.raises(PagestormError, match="cannot convert") as caught:
        read_input(written(tmp_path / "a.txt"))
    assert "XDG_CACHE_HOME" in caught.value.remedy


def test_missing_empty_and_folders_are_told_apart(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_input(tmp_path / "none")
    with pytest.raises(UsageError, match="is empty"):
        read_input(written(tmp_path / "empty", b""))
    with pytest.raises(UsageError, match="a folder"):
        read_input(tmp_path)


def test_files_that_changed_since_are_refused_by_name(tmp_path, doubling):
    raw, text = written(tmp_path / "a.bin"), written(tmp_path / "a.txt")
    refs = [read_input(raw), read_input(text)]
    actors = tuple(Actor("matrix", "scalar", "base", 1, 64, (("file", ref),)) for ref in refs)
    files = files_of([Mix(actors)])
    assert files == {ref.digest: ref.path for ref in refs}
    check_unchanged({ref.digest: ref.path for ref in refs[:1]})
    check_unchanged({ref.digest: ref.path for ref in refs[1:]})
    # The text file may go: what is opened is the converted one.
    text.unlink()
    check_unchanged({refs[1].digest: refs[1].path})
    written(raw, b"other data")
    with pytest.raises(UsageError, match=r"a\.bin has changed"):
        check_unchanged({refs[0].digest: refs[0].path})
