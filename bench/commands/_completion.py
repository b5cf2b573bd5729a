"""Completion scripts for shells, from the parser and the registries (shtab writes them)."""

import argparse
from collections.abc import Callable, Iterable

from bench.errors import PagestormError, UsageError

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "pagestorm"
"""Shells complete by a command's first word, and ``python`` has completions of its own."""
FILES = ("FILE", "RESULTS", "BEFORE", "AFTER", "SCENARIO")
FOLDERS = ("DIR",)


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Completion script of a shell.

    Raises
    ------
    UsageError
        Another shell, or shtab is not installed.
    """
    if shell not in SHELLS:
        raise UsageError(f"no completion for {shell!r}", f"there is one for {', '.join(SHELLS)}")
    try:
        import shtab
    except ImportError:
        raise UsageError("completion scripts need shtab", "pip install shtab") from None
    parser.prog = PROGRAM
    words: dict[str, list[str]] = {}
    for command, action in _actions(parser):
        name = f"{command} {action.dest}" if f"{command} {action.dest}" in WORDS else action.dest
        if action.choices or action.nargs == 0:
            continue
        if name in WORDS:
            if name not in words:
                words[name] = _names(WORDS[name])
            action.choices = words[name] or None
        elif action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell=shell, root_prefix="_pagestorm"))


def _actions(parser: argparse.ArgumentParser) -> Iterable[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, subparser in action.choices.items():
                # Choices are shown for what has no list of its own.
                subparser.prog = f"{PROGRAM} {command}"
                for each in subparser._actions:
                    yield command, each


def _names(registry: Callable[[], Iterable[str]]) -> list[str]:
    """Names of a registry; none where it needs the extension and that is not built."""
    try:
        return list(registry())
    except PagestormError:
        return []


def _kernels() -> Iterable[str]:
    from bench import native

    return native.kernels()


def _policies() -> Iterable[str]:
    from bench import native

    return [*native.policies(), "all"]


def _presets() -> Iterable[str]:
    from bench import sweepfile

    return sweepfile.preset_names()


def _scenarios() -> Iterable[str]:
    from bench import scenariofile

    return scenariofile.scenario_names()


def _models() -> Iterable[str]:
    from analysis import models

    return models.curves()


def _peers() -> Iterable[str]:
    from bench.peers import peers

    return [*peers(), *(f"{p.name}:{t.name}" for p in peers().values() for t in p.tests)]


def _topics() -> Iterable[str]:
    return [*_kernels(), *_policies(), *_presets(), *_scenarios()]


WORDS: dict[str, Callable[[], Iterable[str]]] = {
    "kernel": _kernels,
    "kernels": _kernels,
    "victim": _kernels,
    "aggressor": _kernels,
    "pages": _policies,
    "preset": _presets,
    "scenario": _scenarios,
    "model": _models,
    "crosscheck names": _peers,
    "list name": _topics,
}
"""What completes an argument, by its name, or by its command's name and its own."""


class PrintCompletion(argparse.Action):
    """``--print-completion SHELL``: print the script and end."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Print."""
        print(script(parser, str(values)))
        parser.exit()
