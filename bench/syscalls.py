"""System calls tried once, because files cannot tell whether a sandbox lets them through.

Both are harmless: one opens a counter for this process and closes it, one asks for its policy.
"""

import ctypes
import errno
import os
import struct

_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_GET_MEMPOLICY = {"x86_64": 239, "aarch64": 236}
_PERF_ATTR_SIZE = 64  # the first published size of perf_event_attr: every kernel takes it
_USER_ONLY = (1 << 5) | (1 << 6)  # exclude_kernel, exclude_hv: allowed at paranoid level 2


def open_cycle_counter() -> int | None:
    """Errno of opening a cycle counter for this process; 0 works, None cannot be tried here."""
    number = _PERF_EVENT_OPEN.get(os.uname().machine)
    if number is None:
        return None
    # type, size, config (0: hardware event, cycles), period, sample_type, read_format, flags
    attributes = struct.pack("=IIQQQQQ", 0, _PERF_ATTR_SIZE, 0, 0, 0, 0, _USER_ONLY)
    buffer = ctypes.create_string_buffer(attributes, _PERF_ATTR_SIZE)
    descriptor, code = _call(number, buffer, 0, -1, -1, 0)
    if descriptor >= 0:
        os.close(descriptor)
    return code


def ask_memory_policy() -> int | None:
    """Errno of asking for the process's memory policy; 0 works, None cannot be tried here."""
    number = _GET_MEMPOLICY.get(os.uname().machine)
    if number is None:
        return None
    return _call(number, None, None, 0, None, 0)[1]


def explain(code: int) -> str:
    """Name and text of an errno."""
    return f"{errno.errorcode.get(code, code)}: {os.strerror(code)}"


def _call(number: int, *arguments: object) -> tuple[int, int]:
    """Return value and errno (0 on success) of a system call."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    value = int(libc.syscall(ctypes.c_long(number), *converted))
    return value, ctypes.get_errno() if value < 0 else 0
