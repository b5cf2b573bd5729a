"""``bench list`` shows what the registries hold, no more and no less."""

import json

import pytest

from bench import native
from bench.cli import main
from bench.commands import list as command
from bench.remarks import folded, policy_skip
from bench.scenariofile import scenario_names
from bench.sweepfile import preset_names


def listed(capsys, *arguments):
    assert main(["list", *arguments]) == 0
    return capsys.readouterr().out


def data(capsys, *arguments):
    return json.loads(listed(capsys, *arguments, "--json"))


def test_everything_in_the_registries_is_listed(capsys):
    found = data(capsys)
    assert [row["name"] for row in found["kernels"]] == list(native.kernels())
    assert [row["name"] for row in found["policies"]] == list(native.policies())
    assert [row["name"] for row in found["presets"]] == preset_names()
    assert [row["name"] for row in found["scenarios"]] == scenario_names()
    text = listed(capsys)
    for rows in (found["kernels"], found["policies"], found["presets"], found["scenarios"]):
        for row in rows:
            assert f"  {row['name']} " in text
            assert row["summary"] in text


def test_a_scenario_in_full_shows_its_actors_as_they_are_here(capsys):
    (row,) = data(capsys, "scenarios", "prover")["scenarios"]
    assert [actor["name"] for actor in row["actors"] if actor["critical"]] == ["msm"]
    text = listed(capsys, "scenarios", "prover")
    assert all(actor["actor"] in text for actor in row["actors"])
    assert main(["list", "scenarios", "provr"]) == 2
    assert "prover" in capsys.readouterr().err


def test_a_kernel_in_full_shows_every_parameter_choice_and_variant(capsys):
    for kernel in native.kernels().values():
        text = listed(capsys, "kernels", kernel.name)
        for param in kernel.params:
            assert f"  {param.name}=" in text
            for choice in param.choices:
                assert choice in text
        for variant in kernel.variants:
            assert f"    {variant.name}" in text


def test_byte_counts_are_those_the_kernel_gives(capsys):
    for kernel in native.kernels().values():
        (row,) = data(capsys, "kernels", kernel.name)["kernels"]
        if row["pass"] is None:
            continue
        useful = sum(row["pass"][f"{kind}_bytes"] for kind in ("read", "written", "updated"))
        assert bool(useful) == bool(kernel.arrays)
        assert row["pass"]["bus_min_bytes"] <= row["pass"]["bus_max_bytes"]
        assert bool(row["pass"]["ops"]) == bool(kernel.op)
        assert str(row["pass"]["read_bytes"]) in listed(capsys, "kernels", kernel.name)


def test_a_variant_this_cpu_lacks_is_listed_with_what_it_needs():
    some = next(iter(native.kernels().values()))
    lacking = native.Variant("future", "avx99", False)
    kernel = native.Kernel(**{**vars(some), "variants": (*some.variants, lacking)})
    row = command.kernel_row(kernel)["variants"][-1]
    assert row == {
        "name": "future",
        "available": False,
        "why_not": "this CPU lacks avx99",
        "default": False,
    }


def test_a_policy_this_host_lacks_is_listed_with_its_reason(capsys):
    text = " ".join(listed(capsys, "policies").split())
    reasons = {name: native.policy_available(name) for name in native.policies()}
    missing = [policy_skip(name, reason) for name, reason in reasons.items() if reason]
    for skip in folded(missing):
        assert " ".join(f"{skip.what}: {skip.reason}".split()) in text
        assert " ".join(skip.remedy.split()) in text


def test_presets_say_how_long_they_take_here(capsys):
    for row in data(capsys, "presets")["presets"]:
        assert row["estimate_s"] > 0
        assert row["blocks"] > 0
        assert row["rounds"] >= 6


@pytest.mark.parametrize("topic", command.TOPICS)
def test_an_unknown_name_is_a_usage_error(capsys, topic):
    assert main(["list", topic, "nothing_like_it"]) == 2
    assert "nothing_like_it" in capsys.readouterr().err


def test_an_unknown_topic_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["list", "colours"])
    assert caught.value.code == 2
