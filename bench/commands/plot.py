"""``bench plot``: pictures of a run."""

import argparse
from pathlib import Path

SUMMARY = "draw what a run measured, as PNG files"
EPILOG = """  {prog} plot DIR                  into DIR/plots
  {prog} plot DIR -o pictures"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("directory", metavar="DIR", help="output directory of a run")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (DIR/plots)")


def run(args: argparse.Namespace) -> int:
    """Draw every picture that the samples suffice for, and print the names of the files."""
    import importlib.util

    from analysis import load, report
    from analysis.gallery import gallery
    from bench.cli import program_name
    from bench.errors import PagestormError, UsageError

    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib", "pip install 'pagestorm[analysis]'")
    results = load.load(args.directory)
    pictures = gallery(results, report.build(results, program_name()))
    if not pictures:
        raise UsageError(
            f"nothing to draw in {args.directory}",
            "plots take cases that differ in one thing: pages, threads, size, what runs beside",
        )
    folder = Path(args.output) if args.output else Path(args.directory) / "plots"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            print(picture.write(folder))
    except OSError as error:
        raise PagestormError(
            f"cannot write to {folder}: {error.strerror}", "choose another -o"
        ) from error
    return 0
