# SPDX-License-Identifier: Apache-2.0
"""Sluice trains ONNX models and modules of PyTorch inside a memory budget, compiled, in this process.

    import sluice
    trainer = sluice.compile(module, example, budget="60%", optimizer="adamw")
    losses = trainer.fit(images, labels, epochs=3, lr=3e-4)
    module.load_state_dict(trainer.state_dict())
"""
import os
import pathlib
import tempfile

from ._abi import Cancelled, DataError, Error, LossNotFinite, NoMemory, UsageError
from ._compiler import build, export, roles
from ._trainer import Plan, Trainer

__all__ = ["Cancelled", "DataError", "Error", "LossNotFinite", "NoMemory", "Plan", "Trainer", "UsageError", "compile"]


def compile(model, example=None, *, budget=None, seed=0, threads=0, memory_limit=0, offload_to=None, log=None, compile_log=None, **options):
    """A trainer of a module of PyTorch, or of an ONNX file.

    model: a module, with `example`, what its forward takes (a tensor or a tuple of them) with the batch of a step; or the path of an ONNX file.
    budget: "2GiB", "60%", "40%act" or bytes; none: what keeping everything takes.
    options: flags of sluicec, loss="mse", optimizer="adamw", batch=8, strategy="greedy", host_budget="unlimited"; lists repeat a flag.
    The library is made once for the same model, flags and compiler, and kept in $SLUICE_CACHE or ~/.cache/sluice/libraries.
    compile_log hears the compiler's notes, log what a training says; both take a line."""
    if budget is not None:
        options["memory_budget"] = budget
    hear = compile_log or (lambda line: None)
    opened = {"seed": seed, "threads": threads, "memory_limit": memory_limit, "offload_to": offload_to, "log": log}
    if isinstance(model, (str, os.PathLike)):
        return Trainer(build(pathlib.Path(model), options, hear), **opened)
    if example is None:
        raise TypeError("a module needs an example of what its forward takes")
    with tempfile.TemporaryDirectory() as folder:
        path = export(model, example, folder)
        return Trainer(build(path, roles(model, path, options), hear, type(model).__name__), module=model, **opened)
