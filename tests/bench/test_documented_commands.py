"""Every command that README and docs show is one that works.

The rule: a line in a code block that starts with ``python -m bench`` or ``pagestorm`` is run, with
the flags in ``QUICK`` added, in a folder where the words in ``STAND_INS`` are results, and samples
come from a formula instead of a worker: plans, rounds, files, analysis and tables are real. Lines
of a block with ``<!-- only parsed: REASON -->`` before it, and of commands in ``ONLY_PARSED``, are
parsed only.
"""

import gzip
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench import cli, peerrun, runner
from bench.spawn import Outcome

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(ROOT.glob("results/**/*.md")),
]
SAMPLE = ROOT / "results" / "epyc-2cpu-vm"
LOG = ROOT / "tests" / "data" / "timelines" / "prover.log.gz"
PROGRAM = re.compile(r"^(?:\.venv/bin/)?(?:python -m (bench|pyperf)|(pagestorm))(?=\s|$)")
MARK = re.compile(r"<!-- only parsed: (.+) -->")
# Words that stand for something of the reader's: copies of the stored sample, and small files.
STAND_INS = ("DIR", "OLD", "NEW", "OTHER")
MY_RUNS = ("my-run", "my-corun", "my-remedy")
MATRIX = "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1.0\n2 2 1.0\n3 1 2.0\n"
# Commands that look at something of the reader's, or change the host.
ONLY_PARSED = {
    "observe": "a process of the reader's",
    "try": "a program of the reader's",
    "pipeline run": "needs the log of a real engine, and has tests of its own",
}
FLAGS_ONLY_PARSED = {
    "--undo": "changes the host",
    "--reserve-hugepages": "changes the host",
    "my-line.toml": "a pipeline of the reader's",
    "--probe": "measures for seconds, and has tests of its own",
}
QUICK = {
    # Fewer of the same: 200 comparisons or ten minutes show no more than these.
    "aa": ["--comparisons", "6"],
    "attribute": ["--samples", "6"],
    "corun": ["--samples", "6"],
    "crosscheck": ["--rounds", "1", "--threads", "1"],
    "remedy": ["--budget", "1m"],
    "run": ["--samples", "6"],
}


# Exit codes that are an answer: noise of the formula, a threshold crossed, peers that are not here.
ANSWERS = {"aa": (1,), "compare": (1,), "crosscheck": (3,)}


@dataclass(frozen=True)
class Command:
    """A line of a page."""

    page: str
    line: str
    module: str
    only_parsed: str

    @property
    def words(self):
        text = re.split(r"\s{2,}#|\s#\s|\s[|>]\s", self.line)[0]
        return shlex.split(PROGRAM.sub("", text))


def commands(text, page):
    """Commands in the code blocks of a page."""
    found, fenced, mark = [], False, ""
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
            mark = mark if fenced else ""
            continue
        block = fenced or line.startswith("    ")
        if told := MARK.search(line):
            mark = told[1]
        elif not block and line.strip():
            mark = ""
        stripped = line.strip()
        match = PROGRAM.match(stripped) if block else None
        if match:
            found.append(Command(page, stripped, match[1] or "bench", mark))
    return found


ALL = list(
    {
        (command.module, *command.words): command
        for page in PAGES
        for command in commands(page.read_text(encoding="utf-8"), page.name)
    }.values()
)


def why_only_parsed(command):
    name = next((word for word in command.words if not word.startswith("-")), "")
    flags = [why for flag, why in FLAGS_ONLY_PARSED.items() if flag in command.words]
    own = ONLY_PARSED.get(name, "") or ONLY_PARSED.get(" ".join(command.words[:2]), "")
    return command.only_parsed or own or "".join(flags[:1])


OURS = [command for command in ALL if command.module == "bench"]
RUN = [command for command in OURS if not why_only_parsed(command)]


@pytest.mark.parametrize("command", OURS, ids=lambda command: f"{command.page}: {command.line}")
def test_every_command_is_taken_by_the_parser(command):
    if "--help" in command.words or "--print-completion" in command.words:
        with pytest.raises(SystemExit) as ended:
            cli.make_parser().parse_args(command.words)
        assert ended.value.code == 0
    else:
        cli.make_parser().parse_args(command.words)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The stored sample as a run leaves it, with every file that is read back."""
    folder = tmp_path_factory.mktemp("sample") / "sample"
    shutil.copytree(SAMPLE, folder)
    for packed in folder.glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    return folder


@pytest.fixture
def folder(sample, tmp_path, monkeypatch):
    """Where the reader is: a checkout with results of its own."""
    for name in (*STAND_INS, "pagestorm-out/HOST-20261130T120000Z", *MY_RUNS):
        shutil.copytree(sample, tmp_path / name)
    for name in ("bench", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def supply(words):
    """Files of the reader's that a command names: a sweep, a scenario or a matrix."""
    folder, name = ("presets", "quick") if words[0] == "run" else ("scenarios", "prover")
    for word in words:
        if word.endswith(".toml") and not Path(word).exists():
            shutil.copy(ROOT / "bench" / folder / f"{name}.toml", word)
        if re.search(r"\.log(\.gz)?$", word) and words[0] == "timeline":
            lines = gzip.decompress(LOG.read_bytes()).splitlines(keepends=True)[:200]
            text = b"".join(lines)
            Path(word).write_bytes(gzip.compress(text) if word.endswith(".gz") else text)
        if word.endswith(".mtx"):
            Path(word).write_text(MATRIX)


@pytest.fixture
def no_peers(tmp_path, monkeypatch):
    """No program of another tool, and libraries that answer at once."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    answer = '{"ours": 1e10, "theirs": 1e10, "bytes": 1000000}\n'
    monkeypatch.setattr(peerrun, "watched", lambda *args: (answer, None))


@pytest.fixture
def no_workers(tmp_path_factory, monkeypatch):
    """Samples by the formula of the fake worker, without starting it."""
    monkeypatch.setenv("FAKE_WORKER", str(tmp_path_factory.mktemp("fake")))
    spec = importlib.util.spec_from_file_location(
        "formula", Path(__file__).with_name("fake_worker.py")
    )
    formula = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(formula)
    calls = []

    def run(request, timeout_s, command=(), wake_fd=None):
        calls.append(request)
        return Outcome(formula.respond(request, "ok", 0.0, len(calls)), 0.01, "")

    monkeypatch.setattr(runner, "run_worker", run)
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # nothing here need survive a power cut
    return calls


@pytest.mark.parametrize("command", RUN, ids=lambda command: f"{command.page}: {command.line}")
def test_every_command_runs(command, folder, no_workers, no_peers, capsys):
    words = command.words
    name = next((word for word in words if not word.startswith("-")), "")
    if "--help" in words or "--print-completion" in words:
        return  # ran when it was parsed
    supply(words)
    if "-o" in words:
        shutil.rmtree(words[words.index("-o") + 1], ignore_errors=True)
    code = cli.main([*words, *(QUICK.get(name, []))])
    said = capsys.readouterr()
    assert code in (0, *ANSWERS.get(name, ())), said.err
    assert said.out or said.err


@pytest.mark.parametrize(
    "command", [c for c in ALL if c.module == "pyperf"], ids=lambda command: command.line
)
def test_every_command_of_pyperf_runs(command, folder):
    words = [w for word in command.words for w in (sorted(map(str, folder.glob(word))) or [word])]
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_rule_finds_blocks_and_marks():
    text = (
        "`python -m bench list` in a sentence\n\n    python -m bench run    # now\n\ntext\n"
        "<!-- only parsed: takes an hour -->\n```sh\npython -m bench run --preset full\n```\n"
        "\n```sh\npagestorm list | head\n```\n"
    )
    found = commands(text, "page")
    assert [command.words for command in found] == [["run"], ["run", "--preset", "full"], ["list"]]
    assert [command.only_parsed for command in found] == ["", "takes an hour", ""]


def test_most_commands_are_run():
    assert len(RUN) > 0.6 * len(OURS)
