"""Every peer's output is read rightly, or refused: recorded, cut off, and of another locale."""

import re
from pathlib import Path

import pytest

from bench.peer import Job, ToolError, number
from bench.peers import peers

RECORDED = Path(__file__).parents[1] / "data" / "peers"
ONE = Job(64 << 20, 1, (0,), 3, 0.2)
TWO = Job(64 << 20, 2, (0, 1), 3, 0.2)

# Not recorded but written after the documentation: these could not be run.
STREAM = """-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
This system uses 8 bytes per array element.
-------------------------------------------------------------
Array size = 10000000 (elements), Offset = 0 (elements)
Memory per array = 76.3 MiB (= 0.1 GiB).
Number of Threads requested = 2
Number of Threads counted = 2
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           27830.5     0.005912     0.005749     0.006205
Scale:          17320.2     0.009447     0.009238     0.009794
Add:            19804.7     0.012388     0.012118     0.012711
Triad:          19911.3     0.012344     0.012053     0.012664
-------------------------------------------------------------
Solution Validates: avg error less than 1.000000e-13 on all three arrays
"""
MLC_LATENCY = """Intel(R) Memory Latency Checker - v3.11
Command line parameters: --idle_latency -r -b262144 -c0

Using buffer size of 256.000MiB
Each iteration took 240.3 base frequency clocks (\t96.1\tns)
"""
MLC_BANDWIDTH = """Intel(R) Memory Latency Checker - v3.11
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
ALL Reads        :\t205731.71\t
3:1 Reads-Writes :\t190011.22\t
"""


def recorded(name):
    return (RECORDED / f"{name}.txt").read_text()


# peer, test, job, text, then by hand from the text: rate in our useful bytes, bytes of a pass
def by_hand():
    mbw = re.findall(r"^[123]\tMethod.*Elapsed: (\S+)", recorded("mbw-memcpy"), re.MULTILINE)
    likwid = dict(re.findall(r"^([^:\n]+):\s+(\S+)", recorded("likwid-copy_avx"), re.MULTILINE))
    stream = re.findall(r"rate: (\S+) MB read/sec, (\S+) MB", recorded("stress_ng-stream"))
    memset = re.search(r"(\S+) memset MB", recorded("stress_ng-memset"))
    sysbench = re.search(r"\((\S+) MiB/sec\)", recorded("sysbench-read"))
    fcp = recorded("lmbench-fcp").split()
    return [
        ("likwid", "copy_avx", TWO, recorded("likwid-copy_avx"),
         1e6 * float(likwid["MByte/s"]), int(likwid["Size (Byte)"])),
        ("mbw", "memcpy", ONE, recorded("mbw-memcpy"),
         2 * 3 * 32 * 2**20 / sum(map(float, mbw)), 64 << 20),
        ("sysbench", "read", TWO, recorded("sysbench-read"), 2**20 * float(sysbench[1]), 64 << 20),
        ("stress-ng", "stream", TWO, recorded("stress_ng-stream"),
         2**20 * sum(float(x) for row in stream for x in row), 64 << 20),
        ("stress-ng", "memset", TWO, recorded("stress_ng-memset"),
         2 * 2**20 * float(memset[1]), 64 << 20),
        ("lmbench", "fcp", TWO, recorded("lmbench-fcp"), 2e6 * float(fcp[1]), 64 << 20),
        ("stream", "copy", TWO, STREAM, 27830.5e6, 160_000_000),
        ("stream", "triad", TWO, STREAM, 19911.3e6, 240_000_000),
        ("mlc", "reads", TWO, MLC_BANDWIDTH, 205731.71e6, 64 << 20),
    ]  # fmt: skip


def readings():
    last = float(recorded("lmbench-lat_mem_rd").split()[-1])
    return [
        *by_hand(),
        ("lmbench", "lat_mem_rd", ONE, recorded("lmbench-lat_mem_rd"), 1e9 / last, 0),
        ("mlc", "idle_latency", ONE, MLC_LATENCY, 1e9 / 96.1, 0),
        ("multichase", "chase", ONE, "97.5\n", 1e9 / 97.5, 0),
    ]


def ids(cases):
    return [f"{peer}:{test}" for peer, test, *_ in cases]


def read(peer, test, job, text):
    return peers()[peer].parse(text, peers()[peer].test(test), job)


@pytest.mark.parametrize(
    ("peer", "test", "job", "text", "rate", "size"), readings(), ids=ids(readings())
)
def test_a_recorded_output_is_converted_to_our_bytes(peer, test, job, text, rate, size):
    reading = read(peer, test, job, text)
    assert reading.rate == pytest.approx(rate, rel=1e-4)
    assert reading.pass_bytes == pytest.approx(size, rel=1e-3)


@pytest.mark.parametrize(
    ("peer", "test", "job", "text", "rate", "size"), readings(), ids=ids(readings())
)
def test_an_output_that_is_cut_off_gives_no_other_figure(peer, test, job, text, rate, size):
    """At every place: either the figure is the whole one, or there is an error."""
    refused = 0
    for end in range(len(text)):
        try:
            assert read(peer, test, job, text[:end]).rate == pytest.approx(rate, rel=1e-4)
        except ToolError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize(
    ("peer", "test", "job", "text", "rate", "size"), readings(), ids=ids(readings())
)
def test_a_decimal_comma_is_a_decimal_point(peer, test, job, text, rate, size):
    local = re.sub(r"(\d)\.(\d)", r"\1,\2", text)
    assert local != text
    assert read(peer, test, job, local).rate == pytest.approx(rate, rel=1e-4)


@pytest.mark.parametrize("text", ["", "1.234,5", "1,234,567", "nan", "inf", "0.00", "-3", "12 MB"])
def test_what_is_no_speed_is_refused(text):
    with pytest.raises(ToolError):
        number(text)


def test_a_reading_of_likwid_has_its_cpus_and_all_its_threads():
    text = recorded("likwid-copy_avx")
    assert read("likwid", "copy_avx", TWO, text).cpus == (0, 1)
    with pytest.raises(ToolError, match="2 of 1 threads"):
        read("likwid", "copy_avx", ONE, text)


@pytest.mark.parametrize(
    ("peer", "test", "job", "text", "why"),
    [
        ("stress-ng", "stream", ONE, "stream: run duration too short to determine memory rate\n",
         "too short"),
        ("stress-ng", "stream", ONE, recorded("stress_ng-stream"), "2 of 1"),
        ("stress-ng", "memset", ONE, recorded("stress_ng-memset"), "2 of 1"),
        ("lmbench", "fcp", ONE, recorded("lmbench-fcp"), "16.78 MB"),
        ("lmbench", "lat_mem_rd", ONE, '"stride=64\n0.50000 8.2\n', "256 MiB"),
        ("stream", "copy", ONE, STREAM, "without OpenMP"),
        ("stream", "copy", TWO, "usage: stream image\n", "another program"),
        ("mbw", "dumb", ONE, recorded("mbw-memcpy"), "0 of 4 runs"),
        ("sysbench", "read", ONE, "FATAL: Invalid value for memory-block-size: 122M\n", "FATAL"),
    ],
)  # fmt: skip
def test_other_work_than_was_asked_for_is_no_reading(peer, test, job, text, why):
    with pytest.raises(ToolError, match=why):
        read(peer, test, job, text)


def test_a_registry_row_says_all_that_a_table_prints():
    for name, peer in peers().items():
        assert peer.name == name
        assert peer.install
        assert peer.counts
        assert peer.placement
        assert bool(peer.programs) != bool(peer.make or peer.missing), name
        assert len({test.name for test in peer.tests}) == len(peer.tests)


def test_every_part_is_a_kernel_of_ours():
    from bench import native
    from bench.mix import Actor

    for peer in peers().values():
        for test in peer.tests:
            for part in test.ours:
                actor = Actor(
                    part.kernel, part.variant or "scalar", "base", 1, 1 << 20, part.params
                )
                native.canonical(actor)


def test_commands_keep_the_size_over_all_threads():
    def words(peer, test, job):
        return peers()[peer].command(peer, peers()[peer].test(test), job)

    assert "N:67108kB:2" in words("likwid", "load_avx", TWO)
    assert "--memory-block-size=33554432" in words("sysbench", "read", TWO)
    assert "--memory-total-size=201326592" in words("sysbench", "read", TWO)
    assert words("mbw", "memcpy", ONE)[-1] == "32"
    assert words("lmbench", "fcp", TWO)[-2:] == ["16777216", "fcp"]
    assert "5461k" in words("stress-ng", "stream", TWO)
    assert "32768k" in words("stress-ng", "memset", TWO)
