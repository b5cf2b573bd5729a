"""What tests of the runner share: small plans, and a folder that scripts the fake worker."""

import json
import os
import sys
from pathlib import Path

from bench.blocks import Block, Entry, Plan, Settings
from bench.journal import Journal
from bench.mix import mix_name, parse
from bench.runner import Runner, in_rounds
from bench.stop import Stop

WORKER = (sys.executable, "-S", str(Path(__file__).with_name("fake_worker.py")))
SETTINGS = Settings(window_s=0.2, warm_s=0.0, deadline_s=1.0)


def entry(name, cpus=((0,),), estimate_s=0.05):
    return Entry(parse(name).mix, cpus, estimate_s=estimate_s)


def block(id_, *names, question="pages", settings=SETTINGS):
    return Block(id_, question, tuple(entry(name) for name in names), settings)


def pages_plan(rounds=6, kernels=("scan", "chase")):
    """A base and a thp mix of each kernel, a block a kernel."""
    blocks = tuple(
        block(
            f"pages/{kernel}",
            f"{kernel}/scalar/base/1t/1GiB",
            f"{kernel}/scalar/thp/1t/1GiB",
        )
        for kernel in kernels
    )
    return Plan("quick", blocks, rounds, seed=1)


class Fake:
    """The fake worker's folder."""

    def __init__(self, folder, **deeds):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.script(**deeds)

    def script(self, **deeds):
        (self.folder / "script.json").write_text(json.dumps(deeds))

    @property
    def calls(self):
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def environment(self):
        return {**os.environ, "FAKE_WORKER": str(self.folder)}


class Silent:
    """A watcher that remembers."""

    def __init__(self):
        self.messages = []
        self.rounds = []
        self.lines = []

    def sample_starts(self, block, entry, state):
        pass

    def sample_ended(self, block, entry, line):
        self.lines.append(line)

    def round_ended(self, state):
        self.rounds.append(max(map(len, state.closed.values())))

    def message(self, text):
        self.messages.append(text)


def run(folder, plan, watcher=None, next_block=None, **options):
    """Run a plan against the fake worker; returns (status, state)."""
    with Journal(folder) as journal, Stop() as stop:
        runner = Runner(
            journal, plan.blocks, plan.seed, watcher or Silent(), stop, WORKER, **options
        )
        status = runner.run(next_block or in_rounds(plan.blocks, plan.rounds, plan.seed))
        return status, journal.state


def names(block):
    return [mix_name(entry.mix) for entry in block.entries]
