"""``bench fit``: contention models of the curves that results hold."""

import argparse
import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.fit import Fit
    from analysis.measured import MeasuredCurve
    from analysis.model import Curve
    from analysis.selection import Choice

SUMMARY = "fit contention models: bandwidth by threads, loaded latency, TLB, shootdowns"
EPILOG = """  {prog} fit DIR                   the best model for every curve in it
  {prog} fit DIR --model usl       one model, for every curve it is for
  {prog} fit --models              which models there are, and for what
  {prog} fit DIR OTHER --json"""

TITLES = {
    "bandwidth": "bandwidth, GB/s against threads",
    "throughput": "throughput, passes a second against threads",
    "loaded latency": "latency, ns against GB/s of other traffic",
    "tlb": "latency of one line a page, ns against bytes",
    "caches": "latency, ns against bytes",
    "shootdown": "time of a release, ns against CPUs of the address space",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "results",
        nargs="*",
        metavar="RESULTS",
        help="output directories, journals, pyperf files, or folders of them",
    )
    parser.add_argument("--model", metavar="NAME", help="only this model (default: the best)")
    parser.add_argument("--models", action="store_true", help="list the models and stop")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Fit every curve and print parameters with intervals."""
    from analysis import models
    from analysis.load import rows
    from analysis.measured import measured_curves, subjects_of
    from bench.errors import UsageError

    if args.models:
        _list_models()
        return 0
    if not args.results:
        raise UsageError("no results given", "name an output directory, or ask for --models")
    model = models.find(args.model) if args.model else None
    subjects = subjects_of(model) if model else tuple(s for s in TITLES if models.curves(s))
    curves = [c for c in measured_curves(rows(*args.results)) if c.subject in subjects]
    if not curves:
        raise UsageError(
            f"nothing to fit: no case differs from another in {_axes(subjects)} only",
            "run a sweep that varies it: --threads ladder, or the preset full",
        )
    fitted = [(curve, _fit(curve, model)) for curve in curves]
    if args.json:
        _dump(fitted)
    else:
        _show(fitted)
    return 0


def _fit(curve: "MeasuredCurve", model: "Curve | None") -> "Choice":
    from analysis.measured import fit_curve
    from analysis.selection import Choice

    try:
        return fit_curve(curve, model)
    except ValueError as error:  # data that a model has no value for
        x, y = curve.best
        return Choice(None, (), f"{error}: measured best only", x, y)


def _axes(subjects: tuple[str, ...]) -> str:
    from analysis.measured import UNITS

    return " or ".join(dict.fromkeys(UNITS[s][0] for s in subjects if s in UNITS))


def _list_models() -> None:
    from analysis import models

    for subject in dict.fromkeys(model.SUBJECT for model in models.curves().values()):
        print(f"{TITLES.get(subject, subject)}:")
        for name, model in models.curves(subject).items():
            print(f"  {name}: {model.SUMMARY}\n      {model.WHEN}")


# ---- for people ----------------------------------------------------------------------------------


def _show(fitted: list[tuple["MeasuredCurve", "Choice"]]) -> None:
    from bench.commands._tables import make_console

    console = make_console(sys.stdout)
    for subject, title in TITLES.items():
        of_subject = [pair for pair in fitted if pair[0].subject == subject]
        if of_subject:
            console.print(f"{title}:", style="bold", markup=False)
        for curve, choice in of_subject:
            _show_one(console, curve, choice)


def _show_one(console: "Console", curve: "MeasuredCurve", choice: "Choice") -> None:
    from analysis.measured import why_unfitted
    from bench.commands._tables import number

    at, unit = curve.units
    host = f"{curve.host}: " if curve.host else ""
    lines = [f"  {host}{curve.name} ({len(curve.x)} points)"]
    fit = choice.best
    if fit is None:
        lines.append(f"    {why_unfitted(curve, choice)}")
    else:
        lines.append(f"    {choice.reason}")
        for param, (name, *values, note) in zip(fit.model.PARAMS, _parameters(fit), strict=True):
            told = {"x": at, "y": unit, "y/x": f"{unit} a {at.removesuffix('s')}"}.get(param.unit)
            value, low, high = (_quantity(v, told) for v in values)
            words = "" if told in (None, "bytes") else f" {told}"
            text = f"{value}{words} [{low}, {high}]"
            if name in fit.not_identifiable:
                text = "-"
            lines.append(f"      {name:<7} {text:<34} {note}")
        lines += [f"      {name:<7} {number(value)}" for name, value in fit.derived.items()]
        loo = f"{100 * fit.loo:.3g} %" if fit.scale == "log" else f"{number(fit.loo)} {unit}"
        lines.append(f"      error {fit.rms_percent:.3g} %; points left out are missed by {loo}")
    lines += [f"    {text}" for text in _measured(curve)]
    for text in lines:
        console.print(text, markup=False)


def _quantity(value: float, unit: str | None) -> str:
    """Three digits; bytes as KiB and MiB."""
    from bench.commands._tables import number

    if unit != "bytes" or not math.isfinite(value):
        return number(value)
    for exponent, name in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if value >= 1024**exponent:
            return f"{value / 1024**exponent:.3g}{name}"
    return f"{value:.0f}B"


def _measured(curve: "MeasuredCurve") -> list[str]:
    """What the points say without any model."""
    from analysis.latency import latency_limits
    from bench.commands._tables import number

    at, unit = curve.units
    lines = []
    if curve.subject in ("bandwidth", "throughput"):
        x, y = curve.best
        lines.append(f"measured best {number(y)} {unit} at {x:g} {at if x > 1 else at[:-1]}")
    if curve.subject == "loaded latency":
        found = latency_limits(curve.x, curve.y)
        limits = "; ".join(
            f"{factor:g} times from {number(gbps)} {at} on" if gbps == gbps
            else f"{factor:g} times not reached"
            for factor, gbps in found.gb_per_s_at.items()
        )  # fmt: skip
        lines.append(f"measured {number(found.idle_ns)} {unit} at the least load; {limits}")
    if curve.left_out:
        lines.append(f"not in the fit: {curve.left_out}")
    return lines


def _parameters(fit: "Fit") -> list[tuple[str, float, float, float, str]]:
    """Name, value, ends of the interval, and what to know of each parameter."""
    found = []
    for param in fit.model.PARAMS:
        note = param.help
        if param.name in fit.not_identifiable:
            note = "not identifiable"
        if param.name in fit.at_bound:
            note = f"at its bound {fit.at_bound[param.name]:g}"
        low, high = fit.interval(param.name)
        found.append((param.name, fit.params[param.name], low, high, note))
    return found


# ---- for programs --------------------------------------------------------------------------------


def _dump(fitted: list[tuple["MeasuredCurve", "Choice"]]) -> None:
    from analysis.report import plain
    from bench.commands._session import dump_json
    from bench.schema import SCHEMA

    curves = [_document(curve, choice) for curve, choice in fitted]
    dump_json(plain({"schema": SCHEMA, "curves": curves}), sys.stdout)


def _document(curve: "MeasuredCurve", choice: "Choice") -> dict[str, Any]:
    from analysis.measured import saturation, why_unfitted

    fit = choice.best
    data: dict[str, Any] = {
        "subject": curve.subject,
        "host": curve.host,
        "label": curve.label,
        "variant": curve.variant,
        "size": curve.size or None,
        "pages": curve.pages,
        "units": dict(zip(("x", "y"), curve.units, strict=True)),
        "x": curve.x,
        "y": curve.y,
        "n_samples": [len(samples) for samples in curve.samples],
        "not_in_the_fit": [point._asdict() for point in curve.outside],
        "measured_best": {"x": choice.best_x, "y": choice.best_y},
        "reason": why_unfitted(curve, choice) or choice.reason,
        "model": None,
        "saturation": saturation(choice) if curve.subject == "bandwidth" else None,
    }
    if fit is not None:
        data |= {
            "model": fit.model.NAME,
            "parameters": {
                name: {"value": value, "low": low, "high": high, "note": note}
                for name, value, low, high, note in _parameters(fit)
            },
            "derived": fit.derived,
            "not_identifiable": fit.not_identifiable,
            "at_bound": fit.at_bound,
            "error_percent": fit.rms_percent,
            "left_out_error": fit.loo,
            "scale": fit.scale,
            "aicc": fit.aicc,
        }
    return data
