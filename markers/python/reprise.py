# SPDX-License-Identifier: MIT
"""Marks for `reprise capture`: a job says what it is doing.

    import reprise
    for e in range(epochs):
        with reprise.epoch(e):
            for i, batch in enumerate(loader):
                with reprise.step(i):
                    train(batch)

A mark is one prctl that the kernel refuses and the recorder sees; a job that is not recorded pays two microseconds
for it. Standard library only. Where prctl is missing (not Linux), marks do nothing.
"""

import contextlib
import ctypes
import sys

__all__ = ["mark", "begin", "end", "span", "epoch", "step", "batch", "fetch"]

_PRCTL = 0x52505253
_MAGIC = 0x6D61726B
_INSTANT, _BEGIN, _END = 0, 1, 2


def _load():
    if not sys.platform.startswith("linux"):
        return None
    try:
        # PyDLL keeps the GIL: giving it up for so short a call would change the order of the job's threads.
        prctl = ctypes.PyDLL(None).prctl
    except (OSError, AttributeError):
        return None
    prctl.restype = ctypes.c_int
    prctl.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
    return prctl


_prctl = _load()


def _emit(name, number, phase):
    if _prctl is not None:
        _prctl(_PRCTL, name if type(name) is bytes else str(name).encode(), number, phase, _MAGIC)


def mark(name, number=0):
    """Something happened, once."""
    _emit(name, number, _INSTANT)


def begin(name, number=0):
    """A span of the calling thread begins."""
    _emit(name, number, _BEGIN)


def end(name, number=0):
    """The span of that name and number ends."""
    _emit(name, number, _END)


@contextlib.contextmanager
def span(name, number=0):
    """`with span("load", 3):` marks begin and end, also where the body raises."""
    begin(name, number)
    try:
        yield
    finally:
        end(name, number)


def epoch(number):
    """One pass over the data."""
    return span(b"epoch", number)


def step(number):
    """One step of the optimizer."""
    return span(b"step", number)


def batch(number):
    """The use of batch `number`."""
    return span(b"batch", number)


def fetch(number):
    """The making of batch `number`, by whoever reads it from storage."""
    return span(b"fetch", number)
