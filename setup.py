"""Build of the native extension; everything else is in pyproject.toml.

``PAGESTORM_NATIVE=0``, or any system but Linux, skips the extension: loading, fitting, comparing
and reporting need no compiler.
"""

import os
import sys

from setuptools import setup

if sys.platform.startswith("linux") and os.environ.get("PAGESTORM_NATIVE", "1") != "0":
    setup(
        cffi_modules=["csrc/build_native.py:make_ffi"],
        # One binary serves every CPython from 3.11 on.
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
else:
    setup()
