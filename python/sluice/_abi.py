# SPDX-License-Identifier: Apache-2.0
"""The C interface of a library that sluicec wrote (runtime/library/sluice.h), by ctypes. Errors become exceptions with its words."""
from __future__ import annotations

import ctypes as c
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

ABI = 1
F32, I64 = 0, 1


class Error(Exception):
    """What the compiler or a library refused; `status` is its exit status."""
    status = 4


class DataError(Error, ValueError):
    """A file, or what arrays hold, cannot be used."""
    status = 1


class UsageError(Error, ValueError):
    """A call that makes no sense for this model."""
    status = 2


class NoMemory(Error, MemoryError):
    """Memory or threads cannot be had, or a budget is too small."""
    status = 3


class LossNotFinite(Error, ArithmeticError):
    """The loss of a step is no number."""
    status = 5


class Cancelled(Error):
    """A call was cancelled."""
    status = 7


ERRORS: dict[int, type[Error]] = {error.status: error for error in (DataError, UsageError, NoMemory, LossNotFinite, Cancelled)}


def error_of(status: int, message: str) -> Error:
    error = ERRORS.get(status, Error)(message)
    error.status = status
    return error


LOG = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
PROGRESS = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int64, c.c_int64)


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("program", c.c_void_p), ("files", c.c_char_p), ("offload_to", c.c_char_p), ("memory_limit", c.c_uint64),
                ("seed", c.c_uint64), ("threads", c.c_int), ("log", LOG), ("progress", PROGRESS), ("user", c.c_void_p)]


class Tensor(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p), ("type", c.c_int), ("rank", c.c_int), ("shape", c.POINTER(c.c_int64))]


class Output(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p), ("bytes", c.c_size_t)]


Model = Data = c.c_void_p
_tensors = [c.POINTER(Tensor), c.c_int]
SIGNATURES: dict[str, tuple[list[Any], Any]] = {
    "open": ([c.POINTER(Options), c.POINTER(Model)], c.c_int),
    "close": ([Model], None),
    "error": ([Model], c.c_char_p),
    "set": ([Model, c.c_char_p, c.c_double], c.c_int),
    "get": ([Model, c.c_char_p, c.POINTER(c.c_double)], c.c_int),
    "step": ([Model, *_tensors, *_tensors, c.POINTER(c.c_float)], c.c_int),
    "steps": ([Model], c.c_int64),
    "evaluate": ([Model, *_tensors, *_tensors, c.c_char_p, c.POINTER(c.c_double), c.POINTER(c.c_char_p)], c.c_int),
    "predict": ([Model, *_tensors, c.POINTER(Output), c.c_int], c.c_int),
    "variables": ([Model, c.POINTER(c.c_char_p)], c.c_int),
    "read": ([Model, c.c_char_p, c.c_void_p, c.c_size_t], c.c_int),
    "write": ([Model, c.c_char_p, c.c_void_p, c.c_size_t], c.c_int),
    "save": ([Model, c.c_char_p], c.c_int),
    "load": ([Model, c.c_char_p], c.c_int),
    "init": ([Model, c.c_char_p], c.c_int),
    "export": ([Model, c.c_char_p], c.c_int),
    "plan": ([Model, c.POINTER(c.c_char_p)], c.c_int),
    "cancel": ([Model], None),
    "data_open": ([Model, c.POINTER(c.c_char_p), c.c_int, c.POINTER(Data)], c.c_int),
    "data_close": ([Model, Data], None),
    "data_plan": ([Model, Data, c.POINTER(c.c_char_p)], c.c_int),
    "data_step": ([Model, Data, c.POINTER(c.c_int64), c.POINTER(c.c_float)], c.c_int),
    "data_evaluate": ([Model, Data, c.POINTER(c.c_double), c.POINTER(c.c_char_p)], c.c_int),
    "data_predict": ([Model, Data, c.POINTER(Output), c.c_int], c.c_int),
}


def _unknown(name: str) -> Any:
    """In the place of a function that a library of an earlier sluicec lacks."""
    def call(*_: Any) -> int:
        raise UsageError(f"this library has no sluice_{name}(): an earlier sluicec made it")
    return call


class Library:
    """A loaded library; its functions by their names without sluice_."""
    open: Callable[..., int]
    close: Callable[..., None]
    error: Callable[..., bytes]
    steps: Callable[..., int]
    cancel: Callable[..., None]
    data_close: Callable[..., None]

    def __init__(self, path: str | os.PathLike[str]):
        loaded = c.CDLL(str(path))
        if loaded.sluice_abi() != ABI:
            raise UsageError(f"{path} speaks version {loaded.sluice_abi()} of its interface, this package {ABI}; make it with the sluicec of this package")
        for name, (arguments, result) in SIGNATURES.items():
            function = getattr(loaded, "sluice_" + name, None) or _unknown(name)
            function.argtypes, function.restype = arguments, result
            setattr(self, name, function)


@functools.lru_cache(maxsize=1024)
def _form(name: str | None, whole: bool, lengths: tuple[int, ...]) -> Tensor:
    """All of a tensor but where its numbers lie: of the next step it is the same."""
    shape = (c.c_int64 * max(1, len(lengths)))(*lengths)
    return Tensor(name.encode() if name else None, None, I64 if whole else F32, len(lengths), shape)


def tensors(arrays: Sequence[tuple[str | None, npt.NDArray[Any]]]) -> tuple[c.Array[Tensor], int]:
    """A C array of (name, array) pairs, which have to stay as long as it is used; a name of None: by its place."""
    made = (Tensor * max(1, len(arrays)))()
    for place, (name, array) in enumerate(arrays):
        made[place] = _form(name, array.dtype.kind == "i", array.shape)
        made[place].data = array.ctypes.data
    return made, len(arrays)
