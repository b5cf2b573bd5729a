"""The console: one module of ``bench.commands`` a command, found by listing the folder.

A command module has ``SUMMARY`` (one line), ``EPILOG`` (examples), ``add_arguments(parser)`` and
``run(args) -> int``. It imports nothing heavy at its top, so that ``--help`` stays quick.
"""

import argparse
import importlib
import os
import pkgutil
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from types import ModuleType

import bench.commands
from bench.commands._completion import SHELLS, PrintCompletion
from bench.errors import PagestormError

EXIT_CODES = """exit codes: 0 done; 1 a measurement failed or a threshold was crossed; 2 usage or
configuration; 3 the host cannot give what was required; 130 interrupted"""


def command_names() -> list[str]:
    """Names of the commands, from the folder."""
    found = (module.name for module in pkgutil.iter_modules(bench.commands.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def program_name() -> str:
    """The form the program was invoked in, so that what it prints can be pasted."""
    first = sys.argv[0] if sys.argv else ""
    if os.path.basename(first) == "pagestorm":  # noqa: PTH119 - pathlib costs start-up time
        return _as_typed(first)
    return f"{python_name()} -m bench"


def python_name() -> str:
    """Our interpreter as a shell finds it: a bare name only where PATH leads to this very one."""
    for name in ("python", "python3"):
        typed = _as_typed(sys.executable, name)
        if typed == name:
            return name
    return _as_typed(sys.executable)


def _as_typed(program: str, name: str = "") -> str:
    """``name`` (of the program itself, if none is given) where PATH leads to it, else a path."""
    name = name or os.path.basename(program)  # noqa: PTH119
    found = shutil.which(name)
    folder = os.path.dirname(os.path.abspath(program))  # noqa: PTH100,PTH120 - links say which environment it is
    if found and os.path.dirname(os.path.abspath(found)) == folder and _same(found, program):  # noqa: PTH100,PTH120
        return name
    relative = os.path.relpath(program)
    return shlex.quote(relative if not relative.startswith("..") else os.path.abspath(program))  # noqa: PTH100


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:
        return False


def make_parser() -> argparse.ArgumentParser:
    """Build the argument parser from the command modules."""
    parser = argparse.ArgumentParser(
        prog=program_name(),
        description="Measure what this host's memory does, and which remedy pays.",
        epilog=f"example:\n  {program_name()} run\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # flags are looked for by name when a command is proposed again
    )
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        metavar="SHELL",
        help=f"print a completion script for the program pagestorm: {', '.join(SHELLS)}",
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in command_names():
        module = importlib.import_module(f"bench.commands.{name}")
        add_command(subparsers, name.replace("_", "-"), module).set_defaults(run=module.run)
    return parser


def add_command(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    module: ModuleType,
) -> argparse.ArgumentParser:
    """Add the parser of a command's module, with its help and its flags."""
    parser = subparsers.add_parser(
        name,
        help=module.SUMMARY,
        description=module.SUMMARY,
        epilog=f"examples:\n{module.EPILOG.format(prog=program_name())}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        try:
            args = make_parser().parse_args(argv)
        except SystemExit:  # help was printed, or a fault
            sys.stdout.flush()
            raise
        code = args.run(args)
        sys.stdout.flush()
        return int(code)
    except PagestormError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the console's own last word
        if error.remedy:
            print(f"  -> {error.remedy}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away (head, less): not a failure of ours; keep Python from complaining.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
