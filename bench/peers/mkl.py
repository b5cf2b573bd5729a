"""MKL's sparse product, on the very arrays that ours leaves."""

from bench import spmvpair
from bench.peer import Peer, PeerTest

_INSPECTED = "its inspector has rearranged the matrix into memory of its own"

PEER = Peer(
    name="mkl",
    summary="mkl_sparse_d_mv, plain and after its inspector",
    programs=(),
    install="pip install mkl",
    tests=tuple(
        PeerTest(f"{columns}{suffix}", (), differs=_INSPECTED if suffix else "")
        for columns in spmvpair.COLUMNS
        for suffix in ("", "+inspector")
    ),
    command=spmvpair.command_of("mkl"),
    parse=spmvpair.parse,
    counts="both sides: useful bytes of ours over seconds a product",
    placement="in one process with ours, one after the other, kept to its CPUs",
    notes=("its result is compared with ours, bit for bit but for its inspector's",),
    missing=spmvpair.mkl_missing,
)
