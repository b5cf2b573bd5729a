"""What /proc/cpuinfo says about the processors, raw: names and labels are hints, numbers count."""

from collections.abc import Iterator
from dataclasses import dataclass

# Flags that decide which kernel variants and page sizes exist (vectors, big-number arithmetic,
# cache-bypassing stores, page sizes), how TLBs are flushed (invlpgb: without interrupts), and what
# can be timed, counted and controlled. The last row is arm64.
_RELEVANT = """
    sse4_2 avx avx2 fma avx512f avx512dq avx512bw avx512vl avx512ifma adx bmi2 erms fsrm movdir64b
    pdpe1gb la57 pcid invpcid invlpgb clflushopt clwb
    constant_tsc nonstop_tsc rdtscp cqm_mbm_total cqm_mbm_local mba cat_l3 hypervisor
    asimd asimdhp atomics sve sve2 svei8mm svebf16 dcpop dcpodp lrcpc paca mte
"""


@dataclass(frozen=True)
class CpuModel:
    """The processor as it names itself. arm64 has implementer, part and so on, x86 the others."""

    vendor: str | None
    name: str | None
    family: int | None
    model: int | None
    stepping: int | None
    microcode: str | None
    implementer: str | None
    architecture: str | None
    variant: str | None
    part: str | None
    revision: str | None
    flags: tuple[str, ...]  # relevant ones that every listed processor has
    hypervisor: bool | None  # the x86 flag; None where the architecture has none
    tlb_label: str | None  # a label by the vendor, not a measurement
    kinds: int  # different processors listed (cores of different sorts)


def parse_cpuinfo(text: str) -> CpuModel:
    """Read /proc/cpuinfo: the first processor's identity, and the flags common to all."""
    blocks = list(_blocks(text))
    first = blocks[0] if blocks else {}
    flag_sets = [
        set((block.get("flags") or block.get("Features") or "").split()) for block in blocks
    ]
    common = set.intersection(*flag_sets) if flag_sets else set()
    identity = ("cpu family", "model", "stepping", "CPU part", "CPU variant", "model name")
    return CpuModel(
        vendor=first.get("vendor_id"),
        name=first.get("model name"),
        family=_number(first.get("cpu family")),
        model=_number(first.get("model")),
        stepping=_number(first.get("stepping")),
        microcode=first.get("microcode"),
        implementer=first.get("CPU implementer"),
        architecture=first.get("CPU architecture"),
        variant=first.get("CPU variant"),
        part=first.get("CPU part"),
        revision=first.get("CPU revision"),
        flags=tuple(sorted(common & set(_RELEVANT.split()))),
        hypervisor="hypervisor" in common if "flags" in first else None,
        tlb_label=first.get("TLB size"),
        kinds=len({tuple(block.get(key) for key in identity) for block in blocks}),
    )


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """Each processor's rows. Old kernels and some arm64 ones add a block without a processor."""
    for block in text.split("\n\n"):
        rows = {}
        for line in block.splitlines():
            key, colon, value = line.partition(":")
            if colon:
                rows[key.strip()] = value.strip()
        if "processor" in rows:
            yield rows


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
