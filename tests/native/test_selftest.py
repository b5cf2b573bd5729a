"""``bench selftest`` runs what the registry has, passes on this CPU, and names what differs."""

import dataclasses
import json
import struct
import time

import pytest

from bench import cli, native, selftest
from bench.errors import UsageError


def described(name):
    return native.kernel(name)


def test_every_kernel_passes_quickly(capsys):
    started = time.process_time()
    assert cli.main(["selftest"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(native.kernels())
    assert all(" ok " in line for line in lines)
    assert time.process_time() - started < 30


def test_every_available_variant_and_choice_is_run_or_refused():
    for report in selftest.reports():
        kernel = described(report.kernel)
        combinations = len(list(selftest.combinations(kernel)))
        assert report.cases + len(report.refused) == combinations * len(report.variants)
        assert all(": " in line for line in report.refused)


def test_one_wrong_element_of_one_variant_is_found(monkeypatch):
    right = native.run_once

    def wrong(actor, passes):
        once = right(actor, passes)
        if actor.variant == "scalar" or dict(actor.params)["op"] != "copy":
            return once
        a = bytearray(once.arrays["a"][1])
        a[8 * 5 : 8 * 6] = struct.pack("=d", 0.5)
        return dataclasses.replace(
            once, arrays={**once.arrays, "a": (once.arrays["a"][0], bytes(a))}
        )

    monkeypatch.setattr(native, "run_once", wrong)
    (report,) = selftest.reports(["scan"])
    assert not report.ok
    others = len(report.variants) - 1
    assert len(report.failures) == 2 * others
    assert all("a[5] of thread 1 is 0.5, not " in line for line in report.failures)
    assert cli.main(["selftest", "scan"]) == (1 if others else 0)


@pytest.mark.parametrize(
    ("element", "value", "shown"),
    [
        ("u8", struct.pack("=Q", 7), "7"),
        ("f8", struct.pack("=d", 7.5), "7.5"),
        ("u1", b"\x07", "7"),
        ("V3", b"\x01\x02\x03", "0x030201"),
    ],
)
def test_elements_are_shown_as_what_they_are(element, value, shown):
    kernel = dataclasses.replace(
        described("scan"), arrays=(native.Array("x", element, "out", True),)
    )
    zero = {"x": (bytes(2 * len(value)),)}
    found = {"x": (bytes(len(value)) + value,)}
    assert selftest.difference(kernel, zero, found).startswith(f"x[1] of thread 0 is {shown}, not")
    assert selftest.difference(kernel, found, found) == ""


def test_scratch_arrays_may_differ():
    kernel = dataclasses.replace(
        described("scan"), arrays=(native.Array("x", "u8", "scratch", True),)
    )
    assert selftest.difference(kernel, {"x": (bytes(8),)}, {"x": (b"\x01" * 8,)}) == ""


def test_json_is_the_report(capsys):
    assert cli.main(["selftest", "chase", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["kernel"] == "chase"
    assert row["ok"] is True


def test_an_unknown_kernel_is_named():
    with pytest.raises(UsageError, match="nope"):
        list(selftest.reports(["nope"]))
