"""Journals that never were measured: samples of the stored host under other names and values."""

import gzip
import json
import random
from pathlib import Path

import tomli_w

STORED = Path(__file__).parents[2] / "results" / "epyc-2cpu-vm"


def stored_lines():
    """Lines of the measured sample."""
    with gzip.open(STORED / "journal.ndjson.gz", "rt") as file:
        return [json.loads(line) for line in file]


def write_run(folder, blocks, seconds, rounds=6, *, host="vm", options=None, argv=("run",)):
    """Write a run.

    ``blocks``: {id: (question, [mixes of one actor, the baseline first])}; ``seconds(mix, round)``
    gives the time of a pass of ``useful_bytes`` of the stored scan.
    """
    folder.mkdir(parents=True)
    lines = stored_lines()
    start = lines[0] | {"argv": list(argv)}
    scan = next(line for line in lines if line["kind"] == "sample" and "scan" in line["mix"])
    out = [start]
    for round_ in range(rounds):
        for block, (_, mixes) in blocks.items():
            for mix in mixes:
                out.append(_sample(scan, block, round_, mix, seconds(mix, round_), host))
            out.append(
                {"kind": "block", "block": block, "round": round_, "attempt": 0, "status": "ok"}
            )
    out.append({"kind": "end", "status": "done", "time": start["time"]})
    (folder / "journal.ndjson").write_text("".join(json.dumps(line) + "\n" for line in out))
    plan = {
        "schema": 1,
        "digest": "0123456789abcdef",
        "preset": "quick",
        "rounds": rounds,
        "seed": 1,
        "notes": [],
        "options": {"least_bytes": {"base": 1, "thp": 1}} | (options or {}),
        "blocks": [
            {"id": id_, "question": question, "entries": [_entry(mix) for mix in mixes]}
            for id_, (question, mixes) in blocks.items()
        ],
    }
    (folder / "plan.toml").write_text(tomli_w.dumps(plan))
    (folder / "host.json").write_bytes((STORED / "host.json").read_bytes())
    return folder


def scaling(folder, counts=(1, 2, 3, 4, 5, 6, 8, 10, 12, 16), host="vm"):
    """A scan that saturates at 60 GB/s, and gains a tenth from larger pages until it does."""
    rng = random.Random(1)

    def seconds(mix, _round):
        _, _, pages, threads, _ = mix.split("/")
        one = 11.0 if pages == "thp" else 10.0
        rate = min(one * int(threads[:-1]), 60.0) * rng.uniform(0.98, 1.02)
        return useful / rate / 1e9

    useful = next(
        line["actors"][0]["useful_bytes"]
        for line in stored_lines()
        if line["kind"] == "sample" and "scan" in line["mix"]
    )
    blocks = {
        f"pages/{n}": (
            "pages",
            [f"scan/avx512/{pages}/{n}t/256MiB" for pages in ("base", "thp")],
        )
        for n in counts
    }
    return write_run(folder, blocks, seconds, host=host)


def _entry(mix):
    return {"mix": mix, "estimate_s": 0.5, "cpus": [[0]]}


def _sample(line, block, round_, mix, seconds, host):
    actor = line["actors"][0] | {"seconds": seconds, "active_s": seconds, "oversubscribed": False}
    return line | {
        "block": block,
        "round": round_,
        "attempt": 0,
        "mix": mix,
        "actors": [actor],
        "pyperf": line["pyperf"] | {"hostname": host},
    }
