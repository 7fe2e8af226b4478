"""Declares the C API to cffi (API mode): `python -m cffi.gen_src exec-python build_ffi.py out.c` writes the module's C.

omnitide.h is the only source of declarations; what a C compiler alone understands is cut away.
"""

from __future__ import annotations

import re
from pathlib import Path

from cffi import FFI

HEADER = Path(__file__).resolve().parents[1] / "include" / "omnitide.h"


def declarations(header: str) -> str:
    """The header without comments, preprocessor lines and the C++ guard around it."""
    text = re.sub(r"//[^\n]*", "", header)
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.DOTALL)
    constants = re.findall(r"^#define (OT_\w+) \d+$", text, flags=re.MULTILINE)
    text = re.sub(r"^#[^\n]*\n", "", text, flags=re.MULTILINE)
    return text + "".join(f"#define {name} ...\n" for name in constants)


ffibuilder = FFI()
ffibuilder.cdef(declarations(HEADER.read_text(encoding="utf-8")))
# The C function through which native code calls a policy written in Python (runtime/own_policy.py).
ffibuilder.cdef('extern "Python" int ot_python_retain(void *, uint32_t, uint32_t, uint8_t *, size_t);')
ffibuilder.set_source("omnitide_cli._omnitide", '#include "omnitide.h"')
