"""The kernel's rules for huge-page pools, played on a stored tree."""

from pathlib import Path

from bench.hugepages import pool_folder, pool_nodes

MIB2, GIB = 2 * 1024**2, 1024**3


def make_pools(root: Path, nodes: tuple[int, ...]) -> Path:
    """Write a tree with little but pools: eight pages of 2 MiB and of 1 GiB a node, all free."""
    texts = {
        root / "sys/devices/system/node/online": ",".join(str(node) for node in nodes),
        root / "proc/sys/kernel/random/boot_id": "00000000-0000-4000-8000-000000000000",
        root / "proc/meminfo": f"MemAvailable:  {64 * 1024**2} kB",
    }
    for size in (MIB2, GIB):
        for node in (None, *nodes):
            pages = 8 if node is not None else 8 * len(nodes)
            for name, value in (("nr", pages), ("free", pages), ("surplus", 0)):
                texts[pool_folder(root, size, node) / f"{name}_hugepages"] = str(value)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


class PoolKernel:
    """Writes to ``nr_hugepages`` of a stored tree do what the kernel would do.

    ``contiguous`` is how many pages of each node can still be found; growing stops short without an
    error, shrinking takes free pages only and turns the rest into surplus.
    """

    def __init__(self, root: Path, contiguous: int = 1000) -> None:
        self.root = root
        self.contiguous = contiguous

    def read(self, size: int, node: int | None, name: str) -> int:
        return int((pool_folder(self.root, size, node) / name).read_text())

    def pages(self, size: int = MIB2) -> dict[int, int]:
        """Pages that stay in the pool, by node."""
        return {
            node: self.read(size, node, "nr_hugepages") - self.read(size, node, "surplus_hugepages")
            for node in pool_nodes(self.root, size)
        }

    def use(self, node: int, pages: int, size: int = MIB2) -> None:
        """A process takes free pages (negative: gives them back)."""
        free = self.read(size, node, "free_hugepages") - pages
        assert free >= 0
        self._put(size, node, "free_hugepages", free)
        if pages < 0:  # surplus pages go when they are released
            gone = min(-pages, self.read(size, node, "surplus_hugepages"))
            for name in ("surplus_hugepages", "nr_hugepages", "free_hugepages"):
                self._put(size, node, name, self.read(size, node, name) - gone)
        self._sum(size)

    def write(self, path: Path, wanted: int) -> None:
        """What a write to ``nr_hugepages`` does."""
        size = int(path.parent.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        nodes = [n for n in pool_nodes(self.root, size) if f"/node{n}/" in str(path)]
        nodes = nodes or list(pool_nodes(self.root, size))
        change = wanted - sum(self.pages(size)[n] for n in nodes)
        while change > 0 and self.contiguous:
            for node in nodes:
                if change and self.contiguous:
                    self.contiguous -= 1
                    change -= 1
                    for name in ("nr_hugepages", "free_hugepages"):
                        self._put(size, node, name, self.read(size, node, name) + 1)
        for node in nodes:
            gone = min(max(0, -change), self.read(size, node, "free_hugepages"))
            change += gone
            self.contiguous += gone
            for name in ("nr_hugepages", "free_hugepages"):
                self._put(size, node, name, self.read(size, node, name) - gone)
        for node in nodes:
            left = self.pages(size)[node]
            surplus = min(max(0, -change), left)
            change += surplus
            name = "surplus_hugepages"
            self._put(size, node, name, self.read(size, node, name) + surplus)
        self._sum(size)

    def _put(self, size: int, node: int | None, name: str, value: int) -> None:
        (pool_folder(self.root, size, node) / name).write_text(f"{value}\n")

    def _sum(self, size: int) -> None:
        for name in ("nr_hugepages", "free_hugepages", "surplus_hugepages"):
            nodes = pool_nodes(self.root, size)
            self._put(size, None, name, sum(self.read(size, node, name) for node in nodes))
