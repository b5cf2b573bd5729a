"""``bench pipeline``: run a pipeline, simulate it, compare both, and look for what to change.

Each subcommand is a module ``_pipeline_NAME`` of this folder, with ``SUMMARY``, ``EPILOG``,
``add_arguments(parser)`` and ``run(args) -> int`` as commands have them.
"""

import argparse
import importlib
import importlib.util
from types import ModuleType

SUMMARY = "run a pipeline of tasks and pools with real kernels, or simulate it"
EPILOG = """  {prog} pipeline run                     the prover's pipeline, scaled to this host
  {prog} pipeline run my-line.toml --set pw=4 -o out
  {prog} pipeline check my-line.toml --sweep pw=1..8"""

SUBCOMMANDS = ("run", "check", "simulate", "plan")
"""In the order of the help."""


def available() -> dict[str, ModuleType]:
    """Modules of the subcommands that are there, by name."""
    names = {name: f"bench.commands._pipeline_{name}" for name in SUBCOMMANDS}
    return {
        name: importlib.import_module(module)
        for name, module in names.items()
        if importlib.util.find_spec(module) is not None
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    from bench.cli import add_command

    subparsers = parser.add_subparsers(dest="action", metavar="WHAT", required=True)
    for name, module in available().items():
        add_command(subparsers, name, module).set_defaults(act=module.run)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    code: int = args.act(args)
    return code
