"""``bench pipeline run``: a pipeline executed with the kernels of this suite."""

import argparse

SUMMARY = "run a pipeline with real kernels: seconds per job, and where they go"
EPILOG = """  {prog} pipeline run
  {prog} pipeline run my-line.toml --set pw=4 --dry-run"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's flags."""
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="a TOML file, or a name (prover-pipeline)"
    )


def run(args: argparse.Namespace) -> int:
    """Run it."""
    raise NotImplementedError
