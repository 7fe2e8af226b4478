"""What can go wrong, as one tree; the command line turns any of it into a message, a remedy and an exit code.

    OmniTideError               exit code
    ├── RuntimeFailure          1   something failed while the session ran
    │   └── CacheFull           1   the cache has no room for what was to go in
    ├── UsageError              2   flags that contradict each other or the source
    ├── SourceError             3   a video, a sound file, a stream or standard input can't be read
    ├── SessionFileError        3   a saved session can't be read or doesn't fit the model
    ├── ModelError              4   a model can't be loaded or is not supported
    └── DeviceError             5   a camera or a microphone is missing or busy

`message` says what happened and to which file or device; `hint` says what to do about it.
"""

from __future__ import annotations

from typing import ClassVar

INTERRUPTED = 130
"""The exit code after Ctrl-C, SIGTERM or SIGHUP."""


class OmniTideError(Exception):
    """Base of every error that OmniTide raises on purpose."""

    default_exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = self.default_exit_code if exit_code is None else exit_code


class RuntimeFailure(OmniTideError):
    """The session failed while it was running."""


class CacheFull(RuntimeFailure):
    """The cache has no room for what was to go in; the session is as it was."""


class UsageError(OmniTideError):
    """The command was called in a way that can't work."""

    default_exit_code = 2


class SourceError(OmniTideError):
    """A source of picture and sound can't be read."""

    default_exit_code = 3


class SessionFileError(OmniTideError):
    """A saved session can't be read or doesn't fit the model."""

    default_exit_code = 3


class ModelError(OmniTideError):
    """A model can't be loaded or is not supported."""

    default_exit_code = 4


class DeviceError(OmniTideError):
    """A camera or a microphone is missing or busy."""

    default_exit_code = 5
