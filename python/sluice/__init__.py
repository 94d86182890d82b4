# SPDX-License-Identifier: Apache-2.0
"""Sluice trains ONNX models and modules of PyTorch inside a memory budget, compiled, in this process.

    import sluice
    trainer = sluice.compile(module, example, budget="60%", optimizer="adamw")
    losses = trainer.fit(images, labels, epochs=3, lr=3e-4)
    module.load_state_dict(trainer.state_dict())
"""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._abi import Cancelled, DataError, Error, LossNotFinite, NoMemory, UsageError
from ._compiler import Source
from ._files import Files
from ._plan import Plan, Report
from ._trainer import Trainer

if TYPE_CHECKING:
    import torch

__all__ = ["Cancelled", "DataError", "Error", "Files", "LossNotFinite", "NoMemory", "Plan", "Report", "Trainer", "UsageError", "compile"]


def compile(model: torch.nn.Module | str | os.PathLike[str], example: Any = None, *, budget: str | int | None = None, seed: int = 0, threads: int = 0,
            memory_limit: int = 0, offload_to: str | os.PathLike[str] | None = None, log: Callable[[str], object] | None = None,
            compile_log: Callable[[str], object] | None = None, **options: Any) -> Trainer:
    """A trainer of a module of PyTorch, or of an ONNX file.

    model: a module, with `example`, what its forward takes (a tensor or a tuple of them) with the batch of a step; or the path of an ONNX file.
    budget: "2GiB", "60%", "40%act" or bytes; none: what keeping everything takes.
    options: flags of sluicec, loss="mse", optimizer="adamw", batch=8, strategy="greedy", host_budget="unlimited"; lists repeat a flag.
    The library is made once for the same model, flags and compiler, and kept in $SLUICE_CACHE or ~/.cache/sluice/libraries.
    compile_log hears the compiler's notes, log what a training says; both take a line."""
    if budget is not None:
        options["memory_budget"] = budget
    module = None if isinstance(model, (str, os.PathLike)) else model
    if module is not None and example is None:
        raise TypeError("a module needs an example of what its forward takes")
    source = Source(model, example, options, compile_log or (lambda line: None))
    return Trainer(source.library(), source=source, module=module, seed=seed, threads=threads, memory_limit=memory_limit, offload_to=offload_to, log=log)
