# SPDX-License-Identifier: Apache-2.0
"""A model that trains in this process."""
from __future__ import annotations

import ctypes as c
import functools
import json
import os
import pathlib
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast, overload

import numpy as np
import numpy.typing as npt

from ._abi import Cancelled, Library, Model, Options, Output, PROGRESS, LOG, UsageError, error_of, tensors
from ._arrays import Arrays, named, to_array
from ._compiler import Source
from ._files import Files
from ._plan import Plan, Report

if TYPE_CHECKING:
    import torch

Method = TypeVar("Method", bound=Callable[..., Any])
Path = Union[str, "os.PathLike[str]"]
Array = npt.NDArray[Any]
Progress = Callable[[int, int], object]  # of samples done and in all; False ends the call


def _alone(method: Method) -> Method:
    """One call at a time on a trainer: what a call hands out is read before the next one. Callbacks may not call their own trainer."""
    @functools.wraps(method)
    def call(self: Trainer, *arguments: Any, **named: Any) -> Any:
        if self._caller == threading.get_ident():
            raise UsageError("a callback of a call cannot call its own trainer")
        with self._lock:
            self._caller = threading.get_ident()
            try:
                return method(self, *arguments, **named)
            finally:
                self._caller = None
    return cast(Method, call)


class Trainer:
    """Weights, optimizer and memory of one training. Close it, or use it as a context, to free them early. Threads may share it."""

    def __init__(self, library: Path, *, source: Source | None = None, module: torch.nn.Module | None = None, seed: int = 0, threads: int = 0,
                 memory_limit: int = 0, offload_to: Path | None = None, log: Callable[[str], object] | None = None):
        self._handle, self._module, self._source = Model(), module, source
        self._lock = threading.Lock()
        self._caller: int | None = None
        # Of BatchNorm, which the file lacks: steps from here on are added.
        self._tracked = {name: value.clone() for name, value in module.state_dict().items() if name.endswith("num_batches_tracked")} if module is not None else {}
        self._library = Library(library)
        self._progress: Progress | None = None
        self._raised: BaseException | None = None
        self._callbacks = LOG(lambda _, line: log(line.decode(errors="replace")) if log else None), PROGRESS(self._on_progress)
        options = Options(size=c.sizeof(Options), seed=seed, threads=threads, memory_limit=memory_limit, log=self._callbacks[0], progress=self._callbacks[1],
                          offload_to=str(offload_to).encode() if offload_to else None)
        self._check(self._library.open(c.byref(options), c.byref(self._handle)))
        self.plan = Plan(json.loads(self._told("plan")))
        self._inputs = {one["name"]: one for one in self.plan["inputs"] if not one["target"]}
        self._targets = {one["name"]: one for one in self.plan["inputs"] if one["target"]}
        if module is not None:
            self.load_state_dict(module.state_dict())

    # ---- Training

    def set(self, **hyperparameters: float) -> None:
        """lr=0.1, momentum=0.9, weight_decay=..., accumulate=4: as the program's flags of these names."""
        for name, value in hyperparameters.items():
            self._call("set", name.replace("_", "-").encode(), float(value))

    def get(self, name: str) -> float:
        value = c.c_double()
        self._call("get", name.replace("_", "-").encode(), c.byref(value))
        return value.value

    def step(self, inputs: Arrays, targets: Arrays | None = None) -> float:
        """One training step on a batch; its mean loss, before the step."""
        loss, x, y = c.c_float(), named(inputs, self._inputs), named(targets, self._targets)
        self._call("step", *tensors(x), *tensors(y), c.byref(loss))
        return loss.value

    @property
    def steps(self) -> int:
        """Steps done so far, those before a checkpoint that was loaded, too."""
        return self._steps()

    @property
    def batch(self) -> int:
        """Samples that a step takes."""
        return int(self.plan["batch"] * self.get("accumulate"))

    def files(self, train: Path | None = None, *, evaluate: Path | None = None, predict: Path | None = None, **options: Any) -> Files:
        """Files for fit(), evaluate() and predict(), as the program's flags name them: `train` is --data ("imagefolder:photos", a folder of .npy files), the
        others --evaluate and --predict. `options`: the program's flags of data, shuffle=True, augment="flip", mean="0.5", validation_split=20, workers=2,
        class_=["cat", "dog"], metrics="f1"."""
        return Files(self, {"data": train, "evaluate": evaluate, "predict": predict, **options})

    def fit(self, data: Arrays | Iterable[tuple[Arrays, Arrays]] | Files | Path, targets: Arrays | None = None, *, epochs: int = 1, shuffle: bool = False, seed: int = 0,
            progress: Callable[[int, int, int | None, float], object] | None = None, **hyperparameters: float) -> list[list[float]]:
        """Trains on arrays (`data` and `targets`, in whole batches; the rest of an epoch is left out), or on what gives (inputs, targets) batches when it
        is iterated, as a DataLoader does (batches that are not whole are left out), or on files: what files() opened, or "imagefolder:photos" alone. The
        losses, a list for each epoch. `progress`: a function of (epoch, step, steps or None, loss); usually a line on a terminal."""
        if isinstance(data, (Files, str, os.PathLike)) and targets is not None:
            raise UsageError("files hold their own targets; leave `targets` out")
        if isinstance(data, Files) and (shuffle or seed):
            raise UsageError("what files() opened keeps its order; give shuffle and seed to files()")
        self.set(**hyperparameters)
        tell = progress or self._line()
        if isinstance(data, Files):
            losses = data.fit(epochs, tell)
        elif isinstance(data, (str, os.PathLike)):
            with self.files(data, shuffle=shuffle, seed=seed) as files:
                losses = files.fit(epochs, tell)
        else:
            losses = self._fit(data, targets, epochs, shuffle, seed, tell)
        if not progress and sys.stderr.isatty():
            print(file=sys.stderr)
        return losses

    def _fit(self, data: Any, targets: Any, epochs: int, shuffle: bool, seed: int, tell: Callable[[int, int, int | None, float], object]) -> list[list[float]]:
        losses: list[list[float]] = []
        for epoch in range(epochs):
            losses.append([])
            total, batches = self._batches(data, targets, shuffle, seed + epoch)
            for inputs, answers in batches:
                losses[-1].append(self.step(inputs, answers))
                tell(epoch, len(losses[-1]), total, losses[-1][-1])
        return losses

    def _batches(self, data: Any, targets: Any, shuffle: bool, seed: int) -> tuple[int | None, Iterable[tuple[Any, Any]]]:
        size = self.batch
        if targets is None and not isinstance(data, (np.ndarray, dict)):
            whole = lambda x: len(next(iter(x.values())) if isinstance(x, dict) else x[0] if isinstance(x, (tuple, list)) else x) == size  # noqa: E731
            return None, ((x, y) for x, y in data if whole(x))
        x, y = named(data, self._inputs), named(targets, self._targets)
        shared = {name for name, one in self._inputs.items() if one["shared"]}
        found = {len(array) for name, array in x + y if name not in shared}
        if len(found) != 1:
            raise ValueError(f"inputs and targets have {sorted(found)} samples")
        (samples,) = found
        order = np.random.default_rng(seed).permutation(samples) if shuffle else None
        count = samples // size
        if count == 0:
            raise ValueError(f"there are {samples} samples, one step takes {size}")
        take = lambda arrays, rows: {name: array if name in shared else array[rows] for name, array in arrays}  # noqa: E731
        batches = (slice(i * size, (i + 1) * size) for i in range(count))
        chosen = ((batch if order is None else order[batch]) for batch in batches)  # slices are read where they are
        return count, ((take(x, rows), take(y, rows)) for rows in chosen)

    @staticmethod
    def _line() -> Callable[[int, int, int | None, float], object]:
        if not sys.stderr.isatty():
            return lambda *_: None
        return lambda epoch, step, steps, loss: print(f"\repoch {epoch + 1}, step {step}{f' of {steps}' if steps else ''}: loss {loss:.6g}   ", end="",
                                                      file=sys.stderr)

    # ---- Asking

    def evaluate(self, inputs: Arrays | Files | Path, targets: Arrays | None = None, *, metrics: str | None = None,
                 progress: Progress | None = None) -> dict[str, Any]:
        """Loss and metrics over any number of samples, or over files, as a dict."""
        if isinstance(inputs, (Files, str, os.PathLike)) and targets is not None:
            raise UsageError("files hold their own targets; leave `targets` out")
        if isinstance(inputs, (str, os.PathLike)):
            with self.files(evaluate=inputs, metrics=metrics) as files:
                return self.evaluate(files, progress=progress)
        if isinstance(inputs, Files):
            if metrics is not None:
                raise UsageError("give metrics to files(), which opened these")
            return cast("dict[str, Any]", json.loads(self._told("data_evaluate", inputs._handle, None, progress=progress)))
        x, y = named(inputs, self._inputs), named(targets, self._targets)
        return cast("dict[str, Any]", json.loads(self._told("evaluate", *tensors(x), *tensors(y), metrics.encode() if metrics else None, None, progress=progress)))

    @overload
    def predict(self, inputs: Arrays | Files | Path, *, outputs: None = None, progress: Progress | None = None) -> Array: ...

    @overload
    def predict(self, inputs: Arrays | Files | Path, *, outputs: Sequence[str], progress: Progress | None = None) -> dict[str, Array]: ...

    def predict(self, inputs: Arrays | Files | Path, *, outputs: Sequence[str] | None = None, progress: Progress | None = None) -> Array | dict[str, Array]:
        """The model's first output for any number of samples, or for those of files; with `outputs`, a list of names, a dict of them."""
        if isinstance(inputs, (str, os.PathLike)):
            with self.files(predict=inputs) as files:
                return self._predict("data_predict", files._handle, samples=files.plan["prediction"]["samples"], outputs=outputs, progress=progress)
        if isinstance(inputs, Files):
            return self._predict("data_predict", inputs._handle, samples=inputs.plan.get("prediction", {"samples": 0})["samples"], outputs=outputs, progress=progress)
        x = named(inputs, {name: one for name, one in self._inputs.items() if one["predicted"]})
        samples = next((len(array) for name, array in x if not self._inputs[name]["shared"]), self.plan["batch"])
        return self._predict("predict", *tensors(x), samples=samples, outputs=outputs, progress=progress)

    def _predict(self, what: str, *of: Any, samples: int, outputs: Sequence[str] | None, progress: Progress | None) -> Array | dict[str, Array]:
        known = {one["name"]: one["shape"] for one in self.plan["outputs"]}
        wanted = [next(iter(known), "")] if outputs is None else list(outputs)
        results = {name: np.empty((samples * known.get(name, [1])[0] // self.plan["batch"], *known.get(name, [1])[1:]), np.float32) for name in wanted}
        places = (Output * max(1, len(wanted)))(*(Output(name.encode(), array.ctypes.data, array.nbytes) for name, array in results.items()))
        self._call(what, *of, places, len(wanted), progress=progress)
        return results[wanted[0]] if outputs is None else results

    def report(self, path: Path | None = None) -> Report:
        """The compiler's page about this plan: budgets to choose from, time over memory of all strategies, and what happens to each tensor and why. `path`: where
        it is written, too; a name that ends with .csv gets the curves alone. The compiler plans for many budgets, which takes seconds to minutes."""
        if self._source is None:
            raise UsageError("a library has no report of its own; sluice.compile() makes a trainer that has one")
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(path).absolute() if path is not None else pathlib.Path(folder, "plan.html")
            self._source.report(str(output))
            return Report(output.read_text())

    def cancel(self) -> None:
        """From any thread: ends an evaluation or a prediction, or refuses the next call."""
        self._library.cancel(self._handle)

    # ---- Weights

    def variables(self) -> list[dict[str, Any]]:
        """What there is to read and write: name, role, type, shape, other names."""
        return cast("list[dict[str, Any]]", json.loads(self._told("variables")))

    def _variable(self, name: str) -> dict[str, Any]:
        one = next((one for one in self.variables() if name in (one["name"], *one["also"])), None)
        if one is None:
            raise KeyError(name)
        return one

    def read(self, name: str) -> Array:
        one = self._variable(name)
        array = np.empty(one["shape"], one["type"])
        self._call("read", one["name"].encode(), array.ctypes.data, array.nbytes)
        return array

    def write(self, name: str, values: npt.ArrayLike) -> None:
        one = self._variable(name)
        array = to_array(values, one["type"], name)
        if list(array.shape) != one["shape"]:
            raise ValueError(f"'{name}' has the shape {one['shape']}, not {list(array.shape)}")
        self._call("write", one["name"].encode(), array.ctypes.data, array.nbytes)

    def state_dict(self) -> dict[str, Any]:
        """Parameters, frozen ones too, and running statistics by their names in the module; tensors of PyTorch where the trainer was made of a module,
        whose other entries it has as well, else arrays."""
        state = {name: self.read(one["name"]) for one in self.variables() if one["weight"] for name in (one["name"], *one["also"])}
        if self._module is None:
            return state
        import torch
        own = self._module.state_dict()
        moved = lambda name, value: self._tracked[name] + self.steps if name in self._tracked else value  # noqa: E731
        return {name: torch.from_numpy(state[name]) if name in state else moved(name, value) for name, value in own.items()}

    def __copy__(self) -> Trainer:
        raise TypeError("a trainer cannot be copied; save() and load() make another one of its state")

    def __reduce__(self) -> str:
        raise TypeError("a trainer cannot be pickled; save() and load() keep its state")

    def load_state_dict(self, state: Mapping[str, Any]) -> list[str]:
        """Takes what it knows of `state`, and tells the names that it lacks. Optimizer state stays."""
        missing = []
        for one in self.variables():
            if not one["weight"]:
                continue
            found = next((name for name in (one["name"], *one["also"]) if name in state), None)
            if found is None:
                missing.append(one["name"])
            else:
                self.write(one["name"], state[found])
        return missing

    # ---- Files

    def save(self, folder: Path) -> None:
        """A checkpoint, which programs of the same model go on from, too."""
        self._file("save", folder)

    def load(self, path: Path) -> None:
        self._file("load", path)

    def init(self, file: Path) -> None:
        """Weights of a safetensors file, as the program's --init."""
        self._file("init", file)

    def export(self, file: Path) -> None:
        """ONNX or safetensors, by the ending."""
        self._file("export", file)

    # ---- Inside

    @_alone
    def _close_files(self, handle: Any) -> None:
        if self._handle:
            self._library.data_close(self._handle, handle)

    @_alone
    def close(self) -> None:
        if self._handle:
            self._library.close(self._handle)
            self._handle = Model()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_library", None) and getattr(self, "_caller", 0) is None:
            self.close()

    def _file(self, what: str, path: Path) -> None:
        words = os.fsencode(path)
        if b"\0" in words:
            raise ValueError("a path cannot hold a NUL")
        self._call(what, words)

    def _run(self, what: str, *arguments: Any, progress: Progress | None = None) -> None:
        self._progress, self._raised = progress, None
        try:
            self._check(getattr(self._library, what)(self._handle, *arguments))
        except Cancelled:
            if self._raised is not None:  # in a callback, which cancelled by it
                raise self._raised
            raise
        finally:
            self._progress = None

    _call = _alone(_run)

    @_alone
    def _told(self, what: str, *arguments: Any, progress: Progress | None = None) -> bytes:
        text = c.c_char_p()
        self._run(what, *arguments, c.byref(text), progress=progress)
        return text.value or b""

    @_alone
    def _steps(self) -> int:
        return self._library.steps(self._handle)

    def _on_progress(self, _: object, done: int, of: int) -> int:
        try:
            return 1 if self._progress and self._progress(done, of) is False else 0
        except BaseException as error:  # goes on where the call ends
            self._raised = error
            return 1

    def _check(self, status: int) -> None:
        if status != 0:
            message = self._library.error(self._handle) if self._handle else b"the trainer is closed"
            raise error_of(status, (message or b"no message").decode(errors="replace"))
