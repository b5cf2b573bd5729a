"""Peers, one file a tool: the folder is the registry."""

import importlib
import pkgutil

from bench.peer import Peer


def peers() -> dict[str, Peer]:
    """All peers by name, in alphabetical order."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    found = [importlib.import_module(f"bench.peers.{name}").PEER for name in names]
    return {peer.name: peer for peer in found}
