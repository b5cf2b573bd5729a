"""scipy's sparse product, on the very arrays that ours leaves."""

from bench import spmvpair
from bench.peer import Peer, PeerTest

PEER = Peer(
    name="scipy",
    summary="csr_matvec, what A @ x calls",
    programs=(),
    install="pip install scipy",
    tests=tuple(
        PeerTest(columns, (), most_threads=1, differs="its loop is compiled for any x86-64 CPU")
        for columns in spmvpair.COLUMNS
    ),
    command=spmvpair.command_of("scipy"),
    parse=spmvpair.parse,
    counts="both sides: useful bytes of ours over seconds a product",
    placement="in one process with ours, one after the other, kept to its CPU",
    notes=("no result is allocated in its time, as A @ x would do",),
    missing=spmvpair.scipy_missing,
)
