"""A published Groth16 prover as a pipeline: how well the simulation does on numbers not its own.

Every time in it is a published time of a single phase (the middle, where a range is given). Two
figures come from company: ten evaluations at once take ten seconds each, which sets how much of an
evaluation is parallel; and one row of one table sets `Figures.crosstalk`. All other rows are held
out. `analysis.prover_predictions` says what changes to the prover would do.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from scipy.optimize import brentq

from analysis.rates import Alone
from analysis.simulate import Simulated, simulate
from bench.mix import Actor, Pool
from bench.pipeline import Pipeline, Task

PARTITIONS = 10
COMPANY = ("witness", "convert", "spmv", "prep", "b_g2")
"""Phases whose company costs: those on CPUs that have a published time of their own."""
CALLED_FROM, CALLED_TO = "pickup", "epilogue"
"""A GPU worker's call, which the prover's logs time as a whole."""


@cache
def published() -> dict[str, Any]:
    """Figures and tables, each with its source."""
    text = resources.files("analysis").joinpath("data/published_prover.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def middle(name: str) -> float:
    """Published time of a phase alone."""
    found = published()["alone"][name]
    return float(found["low"] + found["high"]) / 2


@dataclass(frozen=True)
class Figures:
    """What the model needs to know; seconds of one partition."""

    witness: float
    jitter: float
    """Of the witness. All partitions are one circuit, so none: a published range is taken for
    what is not known about its mean."""
    evaluate: float
    evaluate_loaded: float
    """With ten at once."""
    prep: float
    gpu: float
    gpu_phase_8: float
    gpu_after_prep: float
    b_g2_192: float
    b_g2_32: float
    epilogue: float
    release: float
    """Of what Rust holds; it goes on behind the epilogue, by a thread of its own."""
    release_cpp: float
    crosstalk: float = 0.0
    """k phases at once go at 1 / (1 + crosstalk k (k - 1)) of their speed: the retrograde term of
    the Universal Scalability Law. Its other term, waiting for a shared resource, is the sharing of
    hardware threads among evaluations here."""
    linear: bool = False
    """Instead 1 / (1 + crosstalk (k - 1)), which never turns back."""
    company: tuple[str, ...] = COMPANY

    def crowding(self, k: int) -> float:
        """Speed of each of k phases at once."""
        return 1 / (1 + self.crosstalk * (k - 1) * (1 if self.linear else k))

    @property
    def parallel(self) -> float:
        """Seconds of an evaluation that all hardware threads share, so that ten take as published.

        What is left (cloning, filling with zeros) is one thread's, slowed by company only.
        """
        slower = 1 / self.crowding(PARTITIONS)
        return (self.evaluate_loaded - self.evaluate * slower) / (PARTITIONS - slower)


def figures() -> Figures:
    """Published figures, not yet calibrated."""
    data = published()
    free = data["release"]
    per_gb = free["seconds_per_gb"]["value"]
    return Figures(
        witness=middle("witness"),
        jitter=0.0,
        evaluate=middle("evaluate"),
        evaluate_loaded=data["loaded"]["evaluate"]["value"],
        prep=middle("prep"),
        gpu=middle("gpu"),
        gpu_phase_8=middle("gpu_before_phase_9"),
        gpu_after_prep=middle("gpu_after_prep"),
        b_g2_192=middle("b_g2_192"),
        b_g2_32=middle("b_g2_32"),
        epilogue=middle("epilogue"),
        release=per_gb * free["rust_gb"]["value"],
        release_cpp=per_gb * free["cpp_gb"]["value"],
    )


@dataclass(frozen=True)
class Setting:
    """What the authors set, in their words: c proofs in all, j of them in flight."""

    c: int
    j: int
    pw: int
    gw: int
    gt: int = 192
    phase: int = 9
    release_lock: bool = False
    """One release at a time."""
    spmv_gives_way: bool = False
    """Evaluations stand still while b_g2 runs: the most that yielding to it can do."""
    spmv_at_once: int = 0
    """0: any number."""


def pipeline(f: Figures, s: Setting) -> tuple[Pipeline, dict[str, Alone]]:
    """Pipeline and costs of a setting.

    The interface that is shared is the machine's hardware threads: an evaluation's parallel part
    takes all, b_g2 what its pool has work for. Nothing else is parallel.
    """
    threads = published()["hardware_threads"]["value"]
    b_g2 = published()["alone"][f"b_g2_{s.gt}"]
    gpu = f.gpu if s.phase >= 9 else f.gpu_phase_8
    lock = (("release_lock", 1),) if s.release_lock else ()
    spmv = (("spmv_lock", 1),) if s.spmv_at_once else ()
    courtesy = "pause" if s.spmv_gives_way else "proceed"
    multiply = Actor("spmv", "published", "thp", threads, 0, courtesy=courtesy)
    tasks = (
        Task("witness", seconds=f.witness, jitter=f.jitter, takes=(("pw", 1),)),
        Task("convert", seconds=f.evaluate - f.parallel, after=("witness",)),
        # The permit goes back when synthesis ends, whether or not a GPU worker is free.
        Task("spmv", multiply, after=("convert",), takes=spmv, puts=(*spmv, ("pw", 1))),
        Task("pickup", after=("spmv",), takes=(("gw", 1),)),
        Task("prep", seconds=f.prep, after=("pickup",)),
        Task(
            "gpu_head",
            seconds=gpu - f.gpu_after_prep,
            threads=0,
            after=("pickup",),
            takes=(("gpu", 1),),
        ),
        Task(
            "gpu_tail",
            seconds=f.gpu_after_prep,
            threads=0,
            after=("gpu_head", "prep"),
            puts=(("gpu", 1),),
        ),
        Task(
            "b_g2",
            seconds=f.b_g2_192 if s.gt == threads else f.b_g2_32,
            threads=b_g2["threads"],
            traffic=float(b_g2["threads"]),
            after=("prep",),
            priority=1,
        ),
        Task("epilogue", seconds=f.epilogue, after=("gpu_tail", "b_g2"), puts=(("gw", 1),)),
        Task("release", seconds=f.release, after=("epilogue",), takes=lock, puts=lock),
        Task("release_cpp", seconds=f.release_cpp, after=("epilogue",)),
    )
    pools = (
        Pool("pw", s.pw),
        Pool("gw", s.gw),
        Pool("gpu", 1),
        Pool("release_lock", 1),
        Pool("spmv_lock", max(1, s.spmv_at_once)),
    )
    made = Pipeline("prover", tasks, pools, PARTITIONS, s.j, bandwidth=float(threads))
    return made, {"spmv": Alone(f.parallel, 1.0, float(threads))}


def run(f: Figures, s: Setting, seed: int = 0) -> Simulated:
    """Simulate a setting: all of its proofs, filling and draining included, as published."""
    made, costs = pipeline(f, s)
    return simulate(
        made, costs, jobs=s.c, seed=seed, crowding=f.crowding, company=f.company, events=True
    )


def total_s(got: Simulated) -> float:
    """Until the last proof is handed over: releases that go on behind that are nobody's wait."""
    return max(event.end_s for event in got.events if event.task == CALLED_TO)


def seconds_per_proof(f: Figures, s: Setting, seed: int = 0) -> float:
    """Total over proofs, as the authors state it: what filling costs is in it."""
    return total_s(run(f, s, seed)) / s.c


@dataclass(frozen=True)
class Row:
    """A row of a published table."""

    sweep: str
    setting: Setting
    s_per_proof: float
    prove_s: float | None
    calibration: bool


def rows() -> list[Row]:
    """All rows of all tables."""
    found = []
    names = ("c", "j", "pw", "gw", "gt", "phase")
    for sweep, table in published()["sweeps"].items():
        for row in table["rows"]:
            both = {**table, **row}
            setting = Setting(**{name: both[name] for name in names})
            found.append(
                Row(
                    sweep,
                    setting,
                    both["s_per_proof"],
                    both.get("prove_s"),
                    both.get("calibration", False),
                )
            )
    return found


MOST_CROSSTALK = 0.05
"""At which ten at once take over five times as long."""


def calibrate(
    f: Figures, to: float | None = None, row: Row | None = None, seed: int = 0
) -> Figures:
    """Set the crosstalk so that one row comes out; 0 where it is reached without any.

    Parameters
    ----------
    f : Figures
    to : float, optional
        Seconds a proof; the published ones, if not given.
    row : Row, optional
        The one marked in the data, if not given.
    """
    row = row or next(r for r in rows() if r.calibration)
    target = row.s_per_proof if to is None else to

    def missed(crosstalk: float) -> float:
        return seconds_per_proof(replace(f, crosstalk=crosstalk), row.setting, seed) - target

    if missed(0.0) >= 0:
        return replace(f, crosstalk=0.0)
    return replace(f, crosstalk=float(brentq(missed, 0.0, MOST_CROSSTALK, xtol=1e-6, rtol=1e-4)))


@dataclass(frozen=True)
class Reproduced:
    """A published row beside what the model gives."""

    row: Row
    s_per_proof: float
    prove_s: float
    binding: str

    @property
    def error(self) -> float:
        """Relative, of the seconds a proof."""
        return self.s_per_proof / self.row.s_per_proof - 1


def reproduce(f: Figures, seed: int = 0) -> list[Reproduced]:
    """Every published row."""
    found = []
    for row in rows():
        got = run(f, row.setting, seed)
        starts = {(e.job, e.item): e.start_s for e in got.events if e.task == CALLED_FROM}
        ends = {(e.job, e.item): e.end_s for e in got.events if e.task == CALLED_TO}
        calls = sum(ends[key] - starts[key] for key in ends)
        found.append(
            Reproduced(row, total_s(got) / row.setting.c, calls / row.setting.c, got.binding.why)
        )
    return found
