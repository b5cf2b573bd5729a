"""What a user asks for: the model of a sweep file. Every fault of a file is told at once.

Each ``[[sweep]]`` table is a cross product of axes. ``compare`` names the axis whose values are set
against each other inside a block; the other axes make the blocks. Tables stand in order of
importance: what a budget cannot pay for is shed from the end. pydantic is imported here, in
``sweepfile`` and in ``scenariofile`` only; ``plan`` turns what is checked here into dataclasses.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from bench.errors import UsageError, unknown_name
from bench.mix import Op, parse_script
from bench.registry import BASE, BEST, Registry, check_kernel, told
from bench.units import parse_duration, parse_size

# Fewer pairs give no distribution-free 95 % interval of the median.
MIN_ROUNDS = 6
_PIN = re.compile(r"(compact|scatter)(:\d+)?|none|cpus:\d+(-\d+)?(,\d+(-\d+)?)*")
_RATE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?)B/s\s*")
_RATE_SCALE = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_KERNEL = re.compile(r"([a-z0-9_]+)(?:\[([^\[\]]*)\])?(?:/([a-z0-9_]+))?")

# ---- values as people write them ----------------------------------------------------------------


def parse_rate(text: str) -> float:
    """Bytes a second of ``2GB/s`` or ``500MB/s``; GB is 1e9 B."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise UsageError(f"not a rate: {text!r}", "write 2GB/s, 500MB/s, or 0 for no limit")
    return float(match[1]) * _RATE_SCALE[match[2]]


def parse_share(text: str) -> float:
    """0.02 of ``2%``."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None:
        raise UsageError(f"not a share: {text!r}", "write 2% or 0.02")
    return float(match[1]) / 100


_REST = re.compile(r"rest\(\s*(\d[^()]*[a-zµ])\s*\)")


def read_script(text: str) -> tuple[Op, ...]:
    """Script as people write it: rests may have a unit, ``pass(2).rest(40ms)``."""
    return parse_script(
        _REST.sub(lambda match: f"rest({round(parse_duration(match[1]) * 1e9)})", text)
    )


def _text(convert: Callable[[str], Any]) -> BeforeValidator:
    """Read text with a converter of ours; its UsageError becomes a fault of the field."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return convert(value)
        except UsageError as error:
            raise ValueError(told(error)) from None

    return BeforeValidator(read)


def _listed(value: object) -> object:
    if isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)


def _pin(value: str) -> str:
    if not _PIN.fullmatch(value):
        raise ValueError("write compact, scatter, compact:NODE, scatter:NODE, none or cpus:0-3,8")
    return value


def _pages(value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    registry = _registry(info)
    names = tuple(dict.fromkeys(BASE if name == "4k" else name for name in value))
    if registry is not None:
        known = [*registry.policies(), "all"]
        wrong = [unknown_name("page policy", name, known) for name in names if name not in known]
        if wrong:
            raise ValueError("; ".join(told(error) for error in wrong))
    return names


def _registry(info: ValidationInfo) -> Registry | None:
    return (info.context or {}).get("registry")


_Many = BeforeValidator(_listed)
_Some = Field(min_length=1)
_Digits = BeforeValidator(
    lambda value: int(value) if isinstance(value, str) and value.isdigit() else value
)

Size = Annotated[int, _text(parse_size), Field(ge=0)]
Duration = Annotated[float, _text(parse_duration), Field(gt=0)]
Rate = Annotated[float, _text(parse_rate), Field(ge=0)]
Share = Annotated[float, _text(parse_share), Field(gt=0, lt=1)]
Pin = Annotated[str, AfterValidator(_pin)]
Pages = Annotated[tuple[str, ...], _Many, AfterValidator(_pages), _Some]
Script = Annotated[tuple[Op, ...], _text(read_script)]
ThreadWord = Literal["all", "cores", "llc", "node", "quick", "ladder", "every"]
Threads = Annotated[Annotated[int, Field(ge=1)] | ThreadWord, _Digits]
NodeChoice = Annotated[Annotated[int, Field(ge=0)] | Literal["each"], _Digits]
Courtesy = Literal["proceed", "yield", "pause"]
Axis = Literal["kernels", "pages", "threads", "sizes", "pin", "aligned", "process", "beside"]
Params = dict[str, Annotated[tuple[int | str, ...], _Many, _Some]]


class Table(BaseModel):
    """One table of a sweep file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


# ---- tables -------------------------------------------------------------------------------------


class Range(Table):
    """Sizes ``from`` one ``to`` another, each ``factor`` times the one before."""

    first: Size = Field(alias="from", gt=0)
    last: Size = Field(alias="to", gt=0)
    factor: int = Field(default=2, ge=2)

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.last < self.first:
            raise ValueError("'to' is smaller than 'from'")
        return self

    def values(self) -> list[int]:
        """Every size of the range."""
        sizes = [self.first]
        while sizes[-1] * self.factor <= self.last:
            sizes.append(sizes[-1] * self.factor)
        return sizes


class Within(Table):
    """A working set to choose: the largest power of two that memory, pools and time allow."""

    least: Size = Field(default=256 << 20, alias="from", gt=0)
    most: Size | None = Field(default=None, alias="to", gt=0)


SizeChoice = Size | Range | Literal["auto", "least"]


class KernelChoice(Table):
    """A kernel and values of its parameters; lists are crossed. As text: ``scan[op=read]/avx2``."""

    name: str
    params: Params = {}
    variant: Annotated[tuple[str, ...], _Many, _Some] = (BEST,)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, str):
            value = _parse_kernel(value)
        registry, folder = _registry(info), (info.context or {}).get("folder")
        if registry is None or folder is None or not isinstance(value, dict):
            return value
        return _with_paths(value, registry, folder)

    @model_validator(mode="after")
    def _known(self, info: ValidationInfo) -> Self:
        registry = _registry(info)
        if registry is not None:
            try:
                check_kernel(registry, self.name, self.params, self.variant)
            except UsageError as error:
                raise ValueError(told(error)) from None
        return self


def _parse_kernel(text: str) -> dict[str, object]:
    match = _KERNEL.fullmatch(text)
    if match is None:
        raise ValueError(f"not a kernel: {text!r}; write scan, scan[op=read] or scan[op=read]/avx2")
    params: dict[str, list[int | str]] = {}
    for item in filter(None, (match[2] or "").split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"parameter without a value: {item!r}")
        params.setdefault(key.strip(), []).append(int(value) if value.isdigit() else value)
    return {"name": match[1], "params": params, "variant": match[3] or BEST}


def _with_paths(choice: dict[str, Any], registry: Registry, folder: Path) -> dict[str, Any]:
    """Make paths of input files relative to the sweep file that names them."""
    kernel, params = registry.kernels().get(str(choice.get("name"))), choice.get("params")
    if kernel is None or not isinstance(params, dict):
        return choice
    files = [param.name for param in kernel.params if param.kind == "file" and param.name in params]
    if not files:
        return choice
    moved = dict(params)
    for name in files:
        values = moved[name] if isinstance(moved[name], list) else [moved[name]]
        moved[name] = [
            str(folder / Path(v).expanduser()) if isinstance(v, str) else v for v in values
        ]
    return {**choice, "params": moved}


class Extra(Table):
    """One actor beside the measured kernel. Paces and a ladder make as many alternatives."""

    kernel: KernelChoice
    pages: str = "same"
    threads: Annotated[Annotated[int, Field(ge=1)] | Literal["rest", "same", "ladder"], _Digits] = 1
    """``ladder``: counts up to all CPUs but one."""
    size: Size | Literal["auto", "same"] = "auto"
    role: Literal["background", "measured"] = "background"
    pace: Annotated[tuple[Rate, ...], _Many, _Some] = (0.0,)
    process: str = ""
    priority: int = Field(default=0, ge=0, le=7)
    courtesy: Courtesy = "proceed"
    weight: float = Field(default=1.0, gt=0)
    joined: bool = False
    pin: Pin = "compact"
    script: Script = ()

    @model_validator(mode="after")
    def _known(self, info: ValidationInfo) -> Self:
        if self.pages != "same":
            _pages((self.pages,), info)
        return self


class Beside(Table):
    """What runs beside the measured kernel; no actors means it runs alone."""

    actors: Annotated[tuple[Extra, ...], _Many] = ()


class Tokens(Table):
    """A pool of tokens that scripts take and put."""

    name: str = Field(pattern="^[a-z0-9_]+$")
    tokens: int = Field(ge=0)
    capacity: int = Field(default=0, ge=0)


class Sweep(Table):
    """One cross product. Times that are not given here come from the file's head."""

    kernels: Annotated[tuple[KernelChoice, ...], _Many, _Some]
    compare: Axis = "pages"
    essential: bool = False
    """Shed only where the file's ``stretch`` is not enough for it."""
    pages: Pages | None = None
    threads: Annotated[tuple[Threads, ...], _Many, _Some] = ("all",)
    sizes: Annotated[tuple[SizeChoice, ...], _Many, _Some] = ("auto",)
    pin: Annotated[tuple[Pin, ...], _Many, _Some] = ("compact",)
    node: Annotated[tuple[NodeChoice, ...], _Many] = ()
    """Keep CPUs, and by first touch memory, to these nodes; ``each`` is every node with CPUs."""
    aligned: Annotated[tuple[bool, ...], _Many, _Some] = (False,)
    process: Annotated[tuple[str, ...], _Many, _Some] = ("",)
    beside: Annotated[tuple[Beside, ...], _Many, _Some] = (Beside(),)
    pools: Annotated[tuple[Tokens, ...], _Many] = ()
    pace: Rate = 0.0
    priority: int = Field(default=0, ge=0, le=7)
    courtesy: Courtesy = "proceed"
    weight: float = Field(default=1.0, gt=0)
    joined: bool = False
    script: Script = ()
    window: Duration | None = None
    shortest_window: Duration | None = None
    warm: Duration | None = None
    min_passes: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_kernel(self) -> Self:
        names = list(dict.fromkeys(choice.name for choice in self.kernels))
        if self.compare == "kernels" and len(names) > 1:
            told = " and ".join(names)
            raise ValueError(f"compare 'kernels' sets parameters of one kernel apart, not {told}")
        return self

    @model_validator(mode="after")
    def _something_to_compare(self) -> Self:
        # Other axes have words that stand for several values.
        if self.compare in ("process", "aligned", "pin", "beside"):
            values = getattr(self, self.compare)
            if len(values) < 2:
                raise ValueError(
                    f"compare {self.compare!r} needs at least two values of {self.compare}"
                )
        return self

    @model_validator(mode="after")
    def _node_and_pin(self) -> Self:
        if self.node and any(pin not in ("compact", "scatter") for pin in self.pin):
            raise ValueError("'node' goes with pin compact or scatter only")
        return self


class Exclude(Table):
    """Leave out the cases that match every field given; of a list, any."""

    kernel: Annotated[tuple[str, ...], _Many] = ()
    params: Params = {}
    variant: Annotated[tuple[str, ...], _Many] = ()
    pages: Annotated[tuple[str, ...], _Many, AfterValidator(_pages)] = ()
    threads: Annotated[tuple[Threads, ...], _Many] = ()
    sizes: Annotated[tuple[SizeChoice, ...], _Many] = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("an empty table would leave out everything")
        return self


class Config(Table):
    """A whole sweep file."""

    summary: str = ""
    rounds: int = Field(default=10, ge=MIN_ROUNDS)
    seed: int = Field(default=1, ge=0, lt=1 << 63)
    budget: Duration | None = None
    stretch: Duration | None = None
    """What essential tables may take where the budget is not enough for them."""
    dead_band: Share = 0.02
    """Smallest effect that matters; verdicts say neutral inside it."""
    working_set: Size | Within = Field(default_factory=lambda: Within.model_validate({}))
    """Size at which page policies are judged: ``auto`` of kernels quoted per operation."""
    longest_sample: Duration = 60.0
    """A working set that the plan chooses keeps every sample under this."""
    max_memory: Size | None = None
    """Live memory of a sample; default: a quarter of what is available."""
    check: bool = True
    pages: Pages = ("all",)
    window: Duration = 0.5
    shortest_window: Duration | None = None
    """A budget may shorten windows down to this; not given, it only sheds cases."""
    warm: Duration = 0.05
    min_passes: int = Field(default=3, ge=1)
    sweep: Annotated[tuple[Sweep, ...], _Many, _Some]
    exclude: Annotated[tuple[Exclude, ...], _Many] = ()
