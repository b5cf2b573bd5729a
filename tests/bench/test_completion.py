"""``--print-completion``: scripts that the shells themselves take, with the registries' names."""

import shutil
import subprocess

import pytest

from bench import cli, native, scenariofile, sweepfile
from bench.commands._completion import SHELLS, script
from bench.peers import peers

pytest.importorskip("shtab", reason="not installed: shtab")
ENDINGS = {
    ("run", "--preset", ""): set(sweepfile.preset_names()),
    ("run", "--kernel", "s"): {name for name in native.kernels() if name.startswith("s")},
    ("run", "--pages", "m"): {name for name in native.policies() if name.startswith("m")},
    ("crosscheck", "s"): {
        name
        for peer in peers().values()
        for name in (peer.name, *(f"{peer.name}:{test.name}" for test in peer.tests))
        if name.startswith("s")
    },
    ("list", "po"): {"policies"},
    ("aa", "--scenario", ""): set(scenariofile.scenario_names()),
    ("cor",): {"corun"},
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        (folder / shell).write_text(script(cli.make_parser(), shell))
    return folder


def ran(program, *words):
    if shutil.which(program) is None:
        pytest.skip(f"not installed: {program}")
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", ENDINGS, ids=" ".join)
def test_bash_offers_the_names_of_the_registries(scripts, words):
    # COMP_WORDBREAKS has the colon: readline hands over what follows the last one.
    text = f"""
        source {scripts}/bash
        function=$(complete -p pagestorm | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        COMP_WORDS=(pagestorm {" ".join(f"'{word}'" for word in words)})
        COMP_CWORD={len(words)}
        $function pagestorm '{words[-1]}' '{words[-2] if words[1:] else ""}'
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert set(ran("bash", "--norc", "-c", text).split()) == ENDINGS[words]


@pytest.mark.parametrize("words", ENDINGS, ids=" ".join)
def test_fish_offers_the_names_of_the_registries(scripts, words):
    line = " ".join(("pagestorm", *words))
    offered = ran("fish", "--no-config", "-c", f"source {scripts}/fish; complete -C '{line}'")
    assert {row.split("\t")[0] for row in offered.splitlines()} == ENDINGS[words]


def test_zsh_takes_the_script_and_registers_it(scripts):
    ran("zsh", "-f", "-n", f"{scripts}/zsh")
    text = f'compdef() {{ print "for $3" }}; eval "$(< {scripts}/zsh)"'
    assert ran("zsh", "-f", "-c", text).split() == ["for", "pagestorm"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_preset_is_in_every_script(scripts, shell):
    text = (scripts / shell).read_text()
    for name in [*cli.command_names(), *sweepfile.preset_names(), *native.kernels()]:
        assert name.replace("_", "-") in text


def test_without_the_extension_the_rest_is_completed(monkeypatch):
    def fails():
        raise cli.PagestormError("no extension")

    monkeypatch.setattr(native, "kernels", fails)
    assert "bystanders" in script(cli.make_parser(), "bash")


def test_the_console_prints_it_and_names_the_shells_it_knows(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--print-completion", "bash"])
    assert ended.value.code == 0
    assert "complete -o" in capsys.readouterr().out
    assert cli.main(["--print-completion", "csh"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err
