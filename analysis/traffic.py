"""From the bytes a program names to the bytes the memory bus moves."""


def write_allocate_factor(read: float, written: float, updated: float = 0.0) -> float:
    """Bus bytes over program bytes of a streaming kernel with ordinary stores.

    A line that is only written is first read from memory; one that is updated is read anyway.
    Non-temporal stores skip that read, so their factor is 1. With this correction the saturated
    bandwidth of one machine is the same for all kernels to about 10 %.

    Parameters
    ----------
    read, written, updated : float
        Bytes of each kind per step; a byte is of one kind, and an updated one moves twice.

    Raises
    ------
    ValueError
        Negative bytes, or none at all.
    """
    if min(read, written, updated) < 0 or read + written + updated == 0:
        raise ValueError("a kernel moves bytes, and not fewer than none of any kind")
    return (read + 2 * written + 2 * updated) / (read + written + 2 * updated)
