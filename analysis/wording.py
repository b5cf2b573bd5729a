"""Numbers and findings in words, for whoever lays out a report: console, page or notebook.

Nothing here computes a finding; what is said comes from `analysis.report` and its like.
"""

import math
from typing import TYPE_CHECKING

from bench.units import about, format_duration, format_size

if TYPE_CHECKING:
    from analysis.concurrency import Concurrency
    from analysis.corun import Accuracy
    from analysis.loaded import LoadedCurve
    from analysis.paired import Comparison
    from analysis.proxy import Throughput
    from analysis.remedy import RemedyResult
    from analysis.report import CaseResult, Estimate, Report
    from analysis.stats import Decision

FORECASTS = {"law": "law", "fit": "fit", "none": "as beside spin"}
WHAT_FORECASTS_ARE = (
    "law: shares of bandwidth, for kernels that stream (its authors saw errors under"
    " {published:.0%}); fit: sensitivity x pressure, from all other pairs, and interrupts as"
    " spinners feel them"
)

MARKS = {"hurts": "+", "helps": "-", "neutral": "."}
"""Of a ratio of times, by the verdict on it."""
WHAT_MARKS_ARE = (
    "+ slower, - faster for certain (95 %, beyond the dead band), . no difference that matters,"
    " no sign: cannot tell"
)

SPACES = {"shared": "in one address space", "own": "the aggressor in a process of its own"}


def split(threads: tuple[int, int]) -> str:
    """Threads of victim and aggressor, and where they differ which is which."""
    which = " (victim:aggressor)" if threads[0] != threads[1] else ""
    return f"{threads[0]}:{threads[1]} threads{which}"


# ---- numbers -------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Three digits, as many as such a measurement has; ``-`` for what is not known."""
    if math.isnan(value):
        return "-"
    if abs(value) >= 1e7:
        return f"{value:.3g}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def percent(share: float) -> str:
    """``+18%``, ``-1.3%``."""
    return f"{share:+.0%}" if abs(share) >= 0.0995 else f"{share:+.1%}"


def percent_interval(lowest_ratio: float, gain: tuple[float, float, float]) -> str:
    """Interval of a gain; empty where there were too few samples for one."""
    _, low, high = gain
    if not math.isfinite(high) or lowest_ratio <= 0:
        return ""
    return f"[{percent(low)}, {percent(high)}]"


def interval(found: "Estimate") -> str:
    """``[38.0, 43.6]``, or how few samples there are."""
    if math.isnan(found.low):
        return f"n={found.n}"
    return f"[{number(found.low)}, {number(found.high)}]"


def throughput_interval(found: "Throughput") -> str:
    """Interval of seconds per job."""
    if math.isnan(found.low):
        return "too few"
    return f"[{number(found.low)}, {number(found.high)}]"


def gain_cells(decision: "Decision") -> tuple[str, str]:
    """Gain in speed and its interval."""
    from analysis.paired import gain

    found = gain(decision)
    if math.isnan(found[0]):
        return "-", ""
    return percent(found[0]), percent_interval(decision.low, found)


def ratio(decision: "Decision") -> str:
    """Time over the baseline's."""
    return "-" if math.isnan(decision.ratio) else f"{decision.ratio:.2f}"


def ratio_interval(decision: "Decision") -> str:
    """Interval of a ratio of times, or why there is none."""
    if math.isnan(decision.ratio) or not math.isfinite(decision.high):
        return decision.reason if math.isnan(decision.ratio) else f"n={decision.n}"
    return f"[{decision.low:.2f}, {decision.high:.2f}]"


def unresolved(decision: "Decision") -> bool:
    """Whether the interval includes "no difference"."""
    return not math.isnan(decision.ratio) and decision.low <= 1 <= decision.high


def foretold(found: float) -> str:
    """Ratio of times that a forecast gives."""
    return "-" if math.isnan(found) else f"{found:.2f}"


def accuracy(found: "Accuracy") -> tuple[str, str, str, str]:
    """Pairs that a forecast says something of, its median and worst error, and of which pair."""
    median, worst = f"{found.median:.0%}", f"{found.worst:+.0%}"
    ends = (median, worst) if found.pairs else ("-", "-")
    return f"{found.pairs} of {found.of}", *ends, found.worst_pair


def duration(seconds: float) -> str:
    """``-`` for what is not known."""
    return "-" if math.isnan(seconds) else format_duration(seconds)


# ---- cases ---------------------------------------------------------------------------------------


def size_used(case: "CaseResult") -> str:
    """Size of a case's memory, and what is used of it where that is less."""
    size = sized(case.size)
    return f"{size} ({about(case.used_bytes)} used)" if case.used_bytes < case.size else size


def sized(n_bytes: int) -> str:
    """Size of an arena; ``-`` for kernels that have none."""
    return format_size(n_bytes) if n_bytes else "-"


def threads(case: "CaseResult") -> str:
    """``2t``, marked where those are more than CPUs."""
    return f"{case.threads}t{'*' if case.oversubscribed else ''}"


def bus(case: "CaseResult") -> str:
    """GB/s that crossed the memory bus, or the limits that enclose them."""
    low, high = number(case.bus_min_gbps), number(case.bus_max_gbps)
    return low if low == high else f"{low} to {high}"


def placements(report: "Report") -> list[str]:
    """Bandwidth by placement of the CPUs used, where there was more than one."""
    lines = []
    for case in report.cases:
        if len(case.by_state) > 1:
            told = ", ".join(
                f"{state} {number(found.value)} (n={found.n})"
                for state, found in case.by_state.items()
            )
            size = format_size(case.size)
            lines.append(f"{case.label} {size} {case.pages} {case.threads}t: {told} GB/s")
    return lines


def flags(report: "Report") -> list[str]:
    """Which values must be read with care, and why."""
    return [f"{case.case}: {flag}" for case in report.cases for flag in case.flags]


def saturation(best: "Concurrency") -> str:
    """Bandwidth that more threads do not raise, and the model that says so."""
    found = best.saturation
    if found is None:
        return "-"
    where = "" if found.threads is None else f" from {found.threads}t"
    return f"{number(found.gbps)} [{number(found.low)}, {number(found.high)}]{where}, {found.model}"


# ---- comparisons ---------------------------------------------------------------------------------


def comparison_name(comparison: "Comparison") -> str:
    """What was compared, in short."""
    size = format_size(comparison.size) if comparison.size else ""
    threads = f"{comparison.threads}t"
    return " ".join(filter(None, (comparison.label, size, threads, comparison.change)))


def finding(comparison: "Comparison") -> str:
    """Verdict; of other work, which is no remedy, the share of the time that it takes."""
    if comparison.question != "kernels":
        return comparison.decision.verdict
    found = comparison.decision.ratio
    return f"1/{1 / found:.3g} of the time" if 0 < found < 0.5 else f"{found:.3g} x the time"


def comparison_interval(comparison: "Comparison") -> str:
    """Interval of the gain, or how few pairs there are."""
    found = percent_interval(comparison.decision.low, comparison.gain)
    return found or f"n={comparison.decision.n}"


def way_out(comparison: "Comparison") -> str:
    """What would decide it."""
    seconds = comparison.seconds_to_decide
    took = "" if math.isnan(seconds) else f", {format_duration(seconds)} of measuring"
    return comparison.decision.reason + took


# ---- latency under load --------------------------------------------------------------------------


def asked(pace: float, first: bool) -> str:
    """Rate asked of each thread of the traffic."""
    if first:
        return "alone"
    return f"{pace:g}" if pace else "all it can"


def read_from(curve: "LoadedCurve") -> list[str]:
    """What a curve of loaded latency says: limits, and the model that describes it."""
    reached = [
        f"{factor:g} x: {number(traffic)} GB/s"
        for factor, traffic in curve.gb_per_s_at.items()
        if not math.isnan(traffic)
    ]
    never = [f"{f:g} x" for f, traffic in curve.gb_per_s_at.items() if math.isnan(traffic)]
    lines = ["traffic at which latency is " + ", ".join(reached)] if reached else []
    if never:
        lines.append(f"never {', '.join(never)} (at most {curve.measured_factor:.2f} x)")
    if not curve.model:
        return [*lines, f"no model: {curve.reason}"]
    values = ", ".join(f"{key} {number(value)}" for key, value in curve.params.items())
    quality = f"off by {curve.rms_percent:.1f} % rms; {curve.reason}"
    return [*lines, f"{curve.model}: {values}; {quality}"]


# ---- remedies ------------------------------------------------------------------------------------

_MARKS = {"helps": " +", "hurts": " -", "neutral": " ="}


def actor_cell(decision: "Decision | None") -> str:
    """What a remedy does to an actor's speed: ``+`` shown to help, ``-`` to hurt, ``=`` neutral."""
    if decision is None:
        return "-"
    if decision.verdict == "not tested":
        return "stood still" if "stood still" in decision.reason else "-"
    return gain_cells(decision)[0] + _MARKS.get(decision.verdict, "")


def cause(remedy: "RemedyResult") -> str:
    """Memory or scheduling; empty where there is no effect to explain."""
    if remedy.total.verdict not in ("helps", "hurts"):
        return ""
    if remedy.cause == "cannot tell" and not remedy.among_spinners.n:
        return "not tested"  # spinners run for remedies that help
    return remedy.cause
