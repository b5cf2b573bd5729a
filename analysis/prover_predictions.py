"""What changes to the published prover would do, as intervals that reality can contradict.

The interval has two parts: what is not known about the figures (each is drawn from its published
range, the calibration row from what runs of one setting differ by, and what the model leaves open
is drawn too), and how far the model is off where a table says what a change did.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from analysis.intervals import Floats
from analysis.prover import (
    COMPANY,
    Figures,
    Row,
    Setting,
    calibrate,
    figures,
    published,
    rows,
    seconds_per_proof,
)

BASE = Setting(c=20, j=15, pw=10, gw=2, gt=192)
"""The authors' last and longest row, at 38.0 s a proof."""
CHANGES: dict[str, Setting] = {
    "one release at a time (mutex)": replace(BASE, release_lock=True),
    "C++ pool of 32 threads (gt=32)": replace(BASE, gt=32),
    "evaluation gives way to b_g2 (yield)": replace(BASE, spmv_gives_way=True),
    "all three": replace(BASE, release_lock=True, gt=32, spmv_gives_way=True),
    "three GPU workers (gw=3)": replace(BASE, gw=3),
    "four GPU workers (gw=4)": replace(BASE, gw=4),
    "twelve partition workers (pw=12)": replace(BASE, pw=12),
    "fifteen partition workers (pw=15)": replace(BASE, pw=15),
    "twenty partition workers (pw=20)": replace(BASE, pw=20),
    "one evaluation at a time (mutex)": replace(BASE, spmv_at_once=1),
}
TESTED_PW = 12
"""Partition workers up to which there are rows in which synthesis sets the pace. Of rows beyond,
which the GPU binds, the model does well, but they say nothing about more synthesis at once."""
NOT_MODELLED = 30
"""Partition workers: at 20 GiB each and 69 GiB more they fill nearly all of the machine's memory,
and no row of the model comes near what was measured."""
STRATA = 101
EXACT = 0.05
"""Standard deviation of a figure that is given without a range, relative."""


@dataclass(frozen=True)
class Prediction:
    """Change of throughput: 0.03 is 3 % more proofs an hour."""

    change: str
    gain: float
    low: float
    high: float
    """95 %."""
    claim: str


def draw(random: np.random.Generator) -> Figures:
    """One set of figures that is compatible with what is published, calibrated."""
    alone = published()["alone"]

    def within(name: str) -> float:
        low, high = alone[name]["low"], alone[name]["high"]
        if high > low:
            return float(random.uniform(low, high))
        return float(low * math.exp(random.normal(0, EXACT)))

    spread = (alone["witness"]["high"] - alone["witness"]["low"]) / 2 / math.sqrt(3)
    base = figures()
    found = replace(
        base,
        witness=within("witness"),
        # How much of the range is between partitions nobody says.
        jitter=float(random.uniform(0, spread / base.witness)),
        evaluate=within("evaluate"),
        evaluate_loaded=base.evaluate_loaded * math.exp(random.normal(0, EXACT)),
        prep=within("prep"),
        gpu=within("gpu"),
        b_g2_192=within("b_g2_192"),
        b_g2_32=within("b_g2_32"),
        # The cost of releases is from one remark about another version.
        release=base.release * math.exp(random.normal(0, math.log(2))),
        linear=bool(random.integers(2)),
        company=(*COMPANY, "release", "release_cpp") if random.integers(2) else COMPANY,
    )
    row = next(row for row in rows() if row.calibration)
    # Two runs at one setting differ by up to this: two standard deviations.
    luck = random.normal(0, published()["run_to_run"]["value"] / 2)
    return calibrate(found, row.s_per_proof * math.exp(luck))


def pairs() -> list[tuple[Row, Row]]:
    """Published rows that differ in one setting, by no more than a user would change it.

    From pw = 5 on, because going from one worker to two is no test of anything; and without the row
    that the model is known not to reach.
    """
    found = []
    for one, other in ((a, b) for a in rows() for b in rows() if a.sweep == b.sweep):
        here, there = one.setting, other.setting
        if not 5 <= here.pw <= there.pw < NOT_MODELLED:
            continue
        gw = here.gw < there.gw and replace(here, gw=there.gw) == there
        nearest = [
            row.setting.pw
            for row in rows()
            if row.sweep == one.sweep
            and row.setting.pw > here.pw
            and replace(here, pw=row.setting.pw) == row.setting
        ]
        pw = here.pw < there.pw and there.pw == min(nearest, default=0)
        if gw or (pw and replace(here, pw=there.pw) == there):
            found.append((one, other))
    return found


def error_of_changes(f: Figures) -> float:
    """Root mean square of what the model says of a change less what was measured, in logarithms."""
    wrong = []
    for one, other in pairs():
        said = math.log(seconds_per_proof(f, one.setting) / seconds_per_proof(f, other.setting))
        wrong.append(said - math.log(one.s_per_proof / other.s_per_proof))
    return math.sqrt(math.fsum(w * w for w in wrong) / len(wrong))


def predict(draws: int = 100, seed: int = 1) -> list[Prediction]:
    """Predict every change of `CHANGES` against `BASE`."""
    random = np.random.default_rng(seed)
    gains: dict[str, list[float]] = {name: [] for name in CHANGES}
    for _ in range(draws):
        f = draw(random)
        luck = int(random.integers(1 << 30))
        before = seconds_per_proof(f, BASE, luck)
        for name, setting in CHANGES.items():
            gains[name].append(math.log(before / seconds_per_proof(f, setting, luck)))
    error = error_of_changes(calibrate(figures()))
    # Equal parts of the distribution in place of drawn values: no luck in the interval's ends.
    parts = (np.arange(STRATA) + 0.5) / STRATA
    errors: Floats = error * np.asarray(student.ppf(parts, len(pairs())))
    return [_prediction(name, np.asarray(gains[name]), errors, error) for name in CHANGES]


def _prediction(name: str, gains: Floats, errors: Floats, error: float) -> Prediction:
    low, high = np.percentile(np.add.outer(gains, errors), (2.5, 97.5))
    gain = float(np.median(gains))
    if CHANGES[name].pw > TESTED_PW:
        claim = f"no claim: nothing tests the model beyond pw={TESTED_PW}"
    elif low > 0 or high < 0:
        claim = "faster" if gain > 0 else "slower"
    elif abs(gain) < error:
        claim = f"no claim: smaller than the model's own error of {error:.1%}"
    else:
        claim = "no claim: the interval holds 0"
    return Prediction(name, math.expm1(gain), math.expm1(low), math.expm1(high), claim)
