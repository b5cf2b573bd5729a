"""Who may import whom: the arrows of docs/design.md."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# analysis runs where there is no extension: all it may import from bench.
FOR_ANALYSIS = {
    "bench.mix",
    "bench.scenario",
    "bench.pipeline",
    "bench.schema",
    "bench.blocks",
    "bench.passlog",
    "bench.pipelineplain",
    "bench.errors",
    "bench.units",
}
# Start-up of a worker is part of every sample.
FOR_WORKER = {
    "bench.disturbance",
    "bench.native",
    "bench.passlog",
    "bench.errors",
    "bench.mix",
    "bench.schema",
}


def imports(path, top_level_only=False):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def modules(folder):
    return sorted((ROOT / folder).rglob("*.py"))


def ours(path, package):
    return {name for name in imports(path) if name.split(".")[0] == package}


def test_bench_init_imports_nothing():
    assert list(imports(ROOT / "bench" / "__init__.py")) == []


def names_the_extension(path):
    """Whether a file imports the extension, or has its name in a string that is no docstring.

    The name is what ``importlib.import_module`` and the like need.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
    ]
    return any("_native" in name.split(".") for name in [*imports(path), *strings])


def test_only_one_file_imports_the_extension():
    found = [path for path in modules("bench") + modules("analysis") if names_the_extension(path)]
    assert found == [ROOT / "bench" / "extension.py"]


@pytest.mark.parametrize(
    "code",
    [
        "import bench._native",
        "from bench import _native",
        "from bench._native import lib",
        "from . import _native",
        "import importlib\nimportlib.import_module('bench._native')",
        "import importlib\nimportlib.import_module('._native', 'bench')",
        "__import__('bench._native')",
    ],
)
def test_every_way_to_import_the_extension_is_noticed(code, tmp_path):
    path = tmp_path / "one.py"
    path.write_text(code)
    assert names_the_extension(path)
    path.write_text('"""Not bench._native itself."""')
    assert not names_the_extension(path)


def test_analysis_imports_only_the_formats_of_bench():
    for path in modules("analysis"):
        names = {name for name in imports(path) if name.startswith("bench.")}
        allowed = {n for n in names if n in FOR_ANALYSIS or n.rpartition(".")[0] in FOR_ANALYSIS}
        assert names == allowed, path


def test_only_commands_import_analysis():
    for path in modules("bench"):
        if path.parent.name != "commands":
            assert not ours(path, "analysis"), path


def test_the_worker_imports_only_what_a_sample_needs():
    names = {name for name in imports(ROOT / "bench" / "worker.py") if name.startswith("bench.")}
    allowed = {n for n in names if n in FOR_WORKER or n.rpartition(".")[0] in FOR_WORKER}
    assert names == allowed


def test_matplotlib_is_imported_in_plot_only_and_inside_functions():
    for path in modules("analysis") + modules("bench"):
        names = {name.split(".")[0] for name in imports(path)}
        if "matplotlib" in names:
            assert path.name == "plot.py", path
            top = {name.split(".")[0] for name in imports(path, top_level_only=True)}
            assert "matplotlib" not in top, path


def test_kernels_and_policies_include_only_the_internal_header_and_their_own():
    for folder in ("kernels", "pages"):
        for path in (ROOT / "csrc" / folder).glob("*.c"):
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.startswith('#include "'):
                    header = line.split('"')[1]
                    own = (path.parent / header).exists()
                    assert header == "internal.h" or own, f"{path}: {header}"


def test_the_engine_names_no_kernel_and_no_policy():
    names = {p.stem for p in (ROOT / "csrc" / "kernels").glob("*.c")} - {"sleep", "spin"}
    for path in (ROOT / "csrc").glob("*.c"):
        text = path.read_text(encoding="utf-8")
        assert not [name for name in names if f'"{name}"' in text], path


def test_every_package_is_installed():
    """Packages are named one by one, and a forgotten one is missing only after an install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for folder in ("bench", "analysis")
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert set(project["tool"]["setuptools"]["packages"]) == found
