"""The compiled binding of native/include/omnitide.h."""

from typing import Any

ffi: Any
lib: Any
