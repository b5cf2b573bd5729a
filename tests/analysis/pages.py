"""Pages to test: of the measured sample, and of a host with every kind of run."""

import math
from pathlib import Path

from analysis.attribution import AttributionReport
from analysis.corun import Accuracy, Cell, CorunReport, SpaceCost
from analysis.load import Results, load
from analysis.page.build import host_page
from analysis.page.model import Page
from analysis.page.source import Host, Options, Run
from analysis.proxy import PoolTime, ProxyReport, SettingResult, TaskTime, Throughput
from analysis.remedy import RemedyResult
from analysis.remedy_report import ActorResult, RemedyReport
from analysis.report import Note, build
from analysis.stats import decide, not_tested
from analysis.tried import Effect, Tried
from analysis.tryreport import TryReport
from analysis.verdict import Contrast

STORED = Path(__file__).parents[2] / "results" / "epyc-2cpu-vm"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&`|[a](javascript:b)"
"""As a user's file or scenario may be called."""


def decision(ratio, spread=0.02, n=8):
    """A decision on times whose ratios lie about one value."""
    return decide([math.log(ratio) + spread * (i / (n - 1) - 0.5) for i in range(n)])


def corun(kernels=("scan", "storm[chunk=4096]")):
    """Each kernel beside each, the second one the worse neighbour."""
    cells = [
        Cell(
            v,
            a,
            (1, 1),
            space,
            decision(1.1 + 0.7 * i),
            decision(1.05 + 0.5 * i),
            1.2 + 0.5 * i,
            1.1 + 0.6 * i,
        )
        for v in kernels
        for i, a in enumerate(kernels)
        for space in ("shared", "own")
    ]
    report = CorunReport("out/corun", "done", 8, 8, list(kernels), cells)
    report.spaces = [SpaceCost(kernels[0], kernels[1], (1, 1), decision(1.4))]
    report.accuracy = [Accuracy("law", 2, 2, 0.05, -0.2, "scan beside storm")]
    report.half_width = 0.03
    report.not_measured = [Note("gather", "over the budget", "--budget 3m")]
    return report


def remedy(scenario="prover", ratios=(("mutex", 0.8), ("thp", 1.0), ("cap:1", 1.3))):
    """Remedies by the time that each leaves, with a prediction for the first."""
    results = [
        RemedyResult(
            name, decision(ratio), decision(ratio), {"b": decision(1.0)}, 0.1,
            0.15 if i == 0 else math.nan, "" if i == 0 else "not every actor was measured alone",
            "memory", not_tested("not measured among spinners"),
        )
        for i, (name, ratio) in enumerate(ratios)
    ]  # fmt: skip
    report = RemedyReport("out/remedy", scenario, "", "done", "mutex pays: +25% of total work",
                          "mutex", 12, 12, 0.02, remedies=results)  # fmt: skip
    report.actors = [
        ActorResult("a", "spmv", 0.6, True, 20.0, 0.5, "1t"),
        ActorResult("b", "storm", 0.4, False, math.nan, math.nan, "1t*"),
    ]
    report.untested = [Note("sem:2", "no time", "a longer --budget")]
    return report


def attribution():
    """One cost that is resolved and one that is not."""
    report = AttributionReport("out/attribute", "done", "chase", "scan", 12)
    report.contrasts = [
        Contrast("all of it", "beside it", "alone", 1.5, 1.4, 1.6),
        Contrast("bandwidth", "beside a streamer past the caches", "beside spin", 1.3, 1.2, 1.4),
        Contrast("cache", "beside a reader", "beside spin", 1.0, 0.9, 1.1),
    ]
    report.residual = 1.1
    return report


def tried():
    """One remedy that helps a command, one that is open, one under which it fails."""
    effect = Effect(True, (), "")
    remedies = [
        Tried("thp", decision(0.8), 0.2, effect, 8.0, figures={"huge": 0.87}),
        Tried("cap", decision(1.0, 0.5), 0.0, effect, 10.0),
        Tried("keep", not_tested("fails"), math.nan, effect, math.nan, failure="exit code 1"),
    ]
    report = TryReport("out/try", "./prover --all", "time", "second", False, "done", "thp helps",
                       "thp", 12, 12, 0.02, 10.0, {"huge": 0.0}, remedies=remedies)  # fmt: skip
    report.effects = {"thp": "took effect: huge pages 0% -> 87%"}
    report.failures = [Note("keep", "exit code 1")]
    return report


def pipeline():
    """Two settings, the second one faster."""
    settings = [
        SettingResult("pw=1", Throughput(2.0, 1.9, 2.1, 8, "samples", 40)),
        SettingResult(
            "pw=2",
            Throughput(1.0, 0.9, 1.1, 8, "samples", 80),
            (TaskTime("mv", 80, 0.04, 0.03, 0.05, 0.02, 0.5),),
            (PoolTime("gpu", 1, 0.4, 0.001),),
            decision(0.5),
        ),
    ]
    return ProxyReport("line", tuple(settings))


def run(name, report, results=None, command=""):
    """A run of a host that has others."""
    return Run(name, "", results or Results(Path("out", name)), report, command, f" ({name})")


def host(*runs, name="one"):
    """A host with these runs."""
    return Host(name, runs, Options("pagestorm", commands=("remedy", "run")))


def measured(name="run"):
    """The measured sample as a run."""
    results = load(STORED)
    return run(name, build(results, "pagestorm", commands=("remedy",)), results, "pagestorm run")


def whole(name="one"):
    """A host with a run of every kind."""
    return host(
        measured(),
        run("corun", corun()),
        run("remedy", remedy()),
        run("attribute", attribution()),
        run("try", tried()),
        run("pipeline", pipeline()),
        name=name,
    )


def page_of(*hosts, title="A title"):
    """The page of hosts."""
    return Page(title, "1.0", tuple(host_page(one) for one in hosts))
