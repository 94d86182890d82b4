# SPDX-License-Identifier: Apache-2.0
"""Samples of files, which the library reads as programs do."""
from __future__ import annotations

import contextlib
import ctypes as c
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._compiler import flags_of

if TYPE_CHECKING:
    from ._trainer import Trainer


class Files:
    """What Trainer.files() opened. `plan`: how many samples there are for "training", "evaluation" and "prediction", and what "classes" are called."""

    def __init__(self, trainer: Trainer, options: dict[str, Any]):
        flags = [flag.encode() for flag in flags_of({name.rstrip("_"): value for name, value in options.items()})]
        self._trainer, self._handle = trainer, c.c_void_p()
        trainer._call("data_open", (c.c_char_p * max(1, len(flags)))(*flags), len(flags), c.byref(self._handle))
        self.plan: dict[str, Any] = json.loads(trainer._told("data_plan", self._handle))

    def step(self) -> tuple[int, float]:
        """One training step on the next batch: the epoch that it is of, from 0, and its mean loss before the step."""
        epoch, loss = c.c_int64(), c.c_float()
        self._trainer._call("data_step", self._handle, c.byref(epoch), c.byref(loss))
        return epoch.value, loss.value

    def fit(self, epochs: int, tell: Callable[[int, int, int | None, float], object]) -> list[list[float]]:
        """Steps until so many epochs more are done; see Trainer.fit()."""
        losses: list[list[float]] = [[] for _ in range(epochs)]
        batches, accumulate = self.plan["training"]["batches"] if "training" in self.plan else 0, int(self._trainer.get("accumulate"))
        first, steps = None, max(1, batches * epochs // accumulate) if epochs else 0
        for _ in range(steps):
            epoch, loss = self.step()
            first = epoch if first is None else first
            of = losses[min(epoch - first, epochs - 1)]
            of.append(loss)
            tell(epoch - first, len(of), batches // accumulate, loss)
        return losses

    def close(self) -> None:
        if self._handle:
            self._trainer._close_files(self._handle)
            self._handle = c.c_void_p()

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # its trainer closes it at the latest
            self.close()
