"""Every command that is printed to be pasted is one that this version takes."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from faked import Fake, block, pages_plan, run

from analysis.load import load
from analysis.report import build
from bench import cli
from bench.blocks import Plan
from bench.planfile import write_plan
from bench.results import write_pyperf

PROGRAM = "pagestorm"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path / "fake"))
    return Fake(tmp_path / "fake")


@pytest.fixture
def folder(tmp_path):
    """A folder whose name must be quoted."""
    return tmp_path / "an out"


def report_of(folder, plan, argv=None, options=None, commands=None):
    if argv is not None:
        folder.mkdir()
        start = f'{{"kind": "start", "schema": 1, "argv": {argv!r}}}\n'.replace("'", '"')
        (folder / "journal.ndjson").write_text(start)
    _, state = run(folder, plan)
    write_plan(folder, plan, options or {})
    write_pyperf(folder, state, [plan.blocks])
    names = cli.command_names() if commands is None else commands
    return build(load(folder), PROGRAM, python="python", commands=names)


def printed(report):
    notes = [*report.skipped, *report.rejected, *report.not_tested]
    return [
        *report.next_commands,
        *(note.remedy for note in notes if note.remedy.startswith(PROGRAM)),
        *(c.decision.command for c in report.comparisons if c.decision.command),
    ]


def parsed(command):
    """What the console makes of a command; fails the test where it refuses it."""
    program, *words = shlex.split(command)
    if program == "python":
        assert words[:2] == ["-m", "pyperf"]
        return None
    assert program == PROGRAM
    return cli.make_parser().parse_args(words)


PLANS = {
    "clear": ({}, pages_plan()),
    "unknown pages": ({"scan": ["unknown"]}, pages_plan()),
    "noise": ({"scan": ["ok:0.1", "ok:0.14", "ok:0.11", "ok:0.1"] * 5}, pages_plan()),
    "too small": (
        {},
        Plan(
            "quick",
            (block("b", *(f"chase[chains=2]/scalar/{p}/8t/64MiB" for p in ("base", "thp"))),),
            6,
            1,
        ),
    ),
    "nothing": ({"scan": ["skip"], "chase": ["skip"]}, pages_plan()),
}


@pytest.mark.parametrize("name", PLANS)
def test_every_command_of_a_report_is_taken(fake, folder, name):
    deeds, plan = PLANS[name]
    fake.script(**deeds)
    report = report_of(folder, plan, options={"least_bytes": {"base": 32 << 20, "thp": 1 << 30}})
    for command in printed(report):
        parsed(command)
    if name == "unknown pages":
        assert any("--accept-unknown" in command for command in printed(report))
    if name == "too small":
        (command,) = (c for c in printed(report) if "--kernel" in c)
        args = parsed(command)
        assert args.kernel == ["chase[chains=2]/scalar"]
        assert (args.threads, args.size) == ("8", "256MiB")


@pytest.mark.parametrize("name", PLANS)
def test_a_command_that_this_version_lacks_is_not_printed(fake, folder, name):
    deeds, plan = PLANS[name]
    fake.script(**deeds)
    report = report_of(folder, plan, commands=["run"])
    assert not [command for command in printed(report) if command.endswith(" remedy")]


def test_more_samples_are_of_the_same_run(fake, folder):
    argv = ["run", "--kernel", "scan[op=read]", "--pages", "base,thp", "--working-set", "1GiB"]
    argv += ["--reserve-hugepages", "--samples", "6", "-o", "there", "--json"]
    # Five pairs decide nothing: the sixth does.
    report = report_of(folder, pages_plan(rounds=5, kernels=("scan",)), argv)
    args = parsed(next(c for c in report.next_commands if "--samples" in c))
    assert args.samples == 6
    assert (args.kernel, args.pages, args.working_set) == (["scan[op=read]"], "base,thp", "1GiB")
    assert args.reserve_hugepages
    assert args.output is None, "another folder"
    assert not args.json
    assert args.budget, "the time is asked for: a preset's budget would shed cases"
    larger = parsed(next(n.remedy for n in report.not_tested if "working set" in n.what))
    assert larger.working_set == "2GiB", "a size, not a word for one"
    assert larger.kernel == ["scan[op=read]"]


@pytest.mark.parametrize("name", ["run", "aa"])
def test_an_interrupted_run_is_resumed_by_its_own_command(fake, folder, name):
    report_of(folder, pages_plan(rounds=6), [name])
    path = folder / "journal.ndjson"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    report = build(load(folder), PROGRAM)
    args = parsed(report.next_commands[0])
    assert (args.command, args.resume) == (name, str(folder))
    assert not [c for c in report.next_commands if "--samples" in c]


def test_flags_named_as_ways_out_exist():
    """Skips of a plan name flags of ``run``."""
    parser = cli.make_parser()
    known = set(re.findall(r"--[a-z-]+", _help(parser, "run")))
    for module in ("plan", "budget", "capacity", "remarks", "sweep"):
        text = (Path(cli.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
        named = set(re.findall(r"--[a-z][a-z-]+", text))
        assert named <= known, module


def _help(parser, name):
    action = next(a for a in parser._actions if a.dest == "command")
    return action.choices[name].format_help()


def test_the_program_is_named_as_a_shell_finds_it(monkeypatch, tmp_path):
    folder = tmp_path / "with space" / "bin"
    folder.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("python", "pagestorm"):
        (folder / name).symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setattr(sys, "argv", ["bench/__main__.py"])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    assert shlex.split(cli.program_name()) == ["with space/bin/python", "-m", "bench"]
    monkeypatch.chdir(elsewhere)
    assert shlex.split(cli.program_name()) == [str(folder / "python"), "-m", "bench"]
    monkeypatch.setenv("PATH", str(folder))
    assert cli.program_name() == "python -m bench"
    monkeypatch.setattr(sys, "argv", [str(folder / "pagestorm"), "run"])
    assert cli.program_name() == "pagestorm"
    monkeypatch.setenv("PATH", "/nowhere")
    assert shlex.split(cli.program_name()) == [str(folder / "pagestorm")]


def test_another_python_on_the_path_is_not_this_one(monkeypatch, tmp_path):
    """Links of two environments lead to one file, and see other packages."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "here" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "there"))
    assert cli.python_name() == str(tmp_path / "here" / "python")


def test_the_examples_of_every_command_are_taken():
    parser = cli.make_parser()
    action = next(a for a in parser._actions if a.dest == "command")
    for each in (parser, *action.choices.values()):
        lines = each.epilog.splitlines()
        assert any(line.strip().startswith(cli.program_name()) for line in lines), each.prog
        for line in lines:
            words = line.split(cli.program_name())
            if len(words) == 2 and words[0].strip() == "":
                command = re.split(r"\s{2,}|\s[>|]\s|\s#", words[1].strip())[0]
                parser.parse_args(shlex.split(command))
