# SPDX-License-Identifier: Apache-2.0
"""Finds sluicec, exports modules for it, and keeps the libraries that it makes by what they were made of."""
from __future__ import annotations

import contextlib
import copy
import hashlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._abi import Error, UsageError, error_of

if TYPE_CHECKING:
    import torch


LIBRARY = ["--emit=library", "--data-formats"]  # the flags that make one, for all that a trainer may be asked


def find_compiler() -> pathlib.Path:
    """$SLUICEC, the compiler beside this package in a build or an installation, or that of the PATH."""
    here = pathlib.Path(__file__).resolve().parent
    places = [os.environ.get("SLUICEC"), here / "bin/sluicec", here.parents[1] / "build/bin/sluicec", shutil.which("sluicec")]
    for place in places:
        if place and os.access(place, os.X_OK):
            return pathlib.Path(place)
    raise Error("there is no sluicec: build or install Sluice and put it into the PATH, or set SLUICEC to it")


def cache_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("SLUICE_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sluice/libraries")


def flags_of(options: Mapping[str, Any]) -> list[str]:
    """Command-line flags of keyword arguments: batch=8 is --batch=8, fuse=True is --fuse, lists repeat their flag."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            flags.append(flag if one is True else f"{flag}={one}")
    return flags


def _processor() -> tuple[str, int | None]:
    """What programs are built for by default: its instructions, and how many there are."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line for line in lines if line.startswith(("flags", "Features"))), ""), os.cpu_count()


def _by_content(flag: str) -> str:
    """A flag with a digest in the place of each file that it names."""
    return re.sub(r"[^=@,:]+", lambda word: hashlib.sha256(pathlib.Path(word[0]).read_bytes()).hexdigest() if os.path.isfile(word[0]) else word[0], flag)


def _digest(model: pathlib.Path, flags: list[str], compiler: pathlib.Path) -> str:
    """Of all that a library depends on: the model and its name, the external data that it names, the files that flags name, compiler and processor."""
    text, state = model.read_bytes(), hashlib.sha256()
    state.update(text)
    # A StringStringEntryProto {"location": NAME} of a tensor.
    beside = {text[found.end():found.end() + found[1][0]].decode(errors="replace") for found in re.finditer(rb"\x0a\x08location\x12([\x01-\x7f])", text, re.S)}
    for path in sorted(model.parent / name for name in beside):
        if path.is_file():
            state.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    stat = compiler.stat()
    state.update(repr((model.name, [_by_content(flag) for flag in flags], str(compiler.resolve()), stat.st_size, stat.st_mtime_ns, _processor())).encode())
    return state.hexdigest()[:32]


def _run(compiler: pathlib.Path, model: pathlib.Path, flags: list[str], output: str, notes: Callable[[str], object], shown: Mapping[str, str]) -> None:
    """`notes` hears the lines that the compiler prints; `shown`: what messages call paths that nobody knows."""
    done = subprocess.run([compiler, model, *flags, "-o", output], capture_output=True, text=True)
    lines = (done.stderr if done.returncode else done.stderr + done.stdout).strip()
    for path, name in shown.items():
        lines = lines.replace(path, name)
    if done.returncode != 0:
        raise error_of(done.returncode, lines.partition("sluicec: error: ")[2] or lines)  # notes may stand before it
    for line in lines.splitlines():
        notes(line)


def build(model: pathlib.Path, options: Mapping[str, Any], notes: Callable[[str], object], shown: str) -> pathlib.Path:
    """The path of the library for an ONNX file, made unless the cache has it."""
    compiler, flags = find_compiler(), [*flags_of(options), *LIBRARY]
    folder = cache_folder() / _digest(model, flags, compiler)
    library = folder / "libmodel.so"
    if library.exists():
        return library
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        _run(compiler, model, flags, f"{work}/model", notes, {str(model): shown, f"{work}/model": shown})
        made = pathlib.Path(work) / "made"
        made.mkdir()
        for file in pathlib.Path(work).glob("*model*"):
            file.rename(made / file.name)
        try:
            made.rename(folder)
        except OSError:  # somebody else was faster
            if not library.exists():
                raise
    return library


def roles(module: torch.nn.Module, model: pathlib.Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """`options` with what the module says and its file `model` cannot: which parameters are trained, and that buffers of numbers are not. Running
    statistics are known by their op; a list of names that are all unknown would be refused."""
    statistics = ("running_mean", "running_var", "num_batches_tracked")
    buffers = [name for name, buffer in module.named_buffers() if buffer.is_floating_point() and name.rpartition(".")[2] not in statistics]
    frozen = [name for name, parameter in module.named_parameters() if not parameter.requires_grad] + buffers
    trained = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    said, text = dict(options), model.read_bytes()
    for flag, names in (("freeze", frozen), ("train", trained)):
        names = [name for name in names if name.encode() in text]
        if names:
            path = model.parent / f"{flag}.txt"
            path.write_text("".join(re.escape(name) + "\n" for name in names))
            own = said.get(flag) or []
            said[flag] = [*([own] if isinstance(own, str) else own), f"@{path}"]
    return said


def _names(net: torch.nn.Module, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Of inputs and outputs as the module's author calls them, so that plans and messages do: the arguments of forward(), where no parameter has the name."""
    taken = {name for name, _ in [*net.named_parameters(), *net.named_buffers()]}
    try:
        parameters = inspect.signature(net.forward).parameters
    except (TypeError, ValueError):  # compiled code has none
        return {}
    inputs = [name for name, about in parameters.items() if about.kind == about.POSITIONAL_OR_KEYWORD][:len(arguments)]
    if len(inputs) < len(arguments) or any(isinstance(argument, (dict, list, tuple)) for argument in arguments) or taken & {*inputs, "output"} or "output" in inputs:
        return {}
    return {"input_names": inputs, "output_names": ["output"]}


def export(module: torch.nn.Module, example: Any, folder: str | pathlib.Path) -> pathlib.Path:
    """Writes a module of PyTorch in training form with the batch of the example, into a file of its class's name; where no exporter can, an error says why."""
    import torch
    path, arguments = pathlib.Path(folder) / f"{type(module).__name__}.onnx", example if isinstance(example, tuple) else (example,)
    net, said = copy.deepcopy(module), []  # tracing moves running statistics
    hows: tuple[dict[str, Any], ...] = ({"dynamo": False, "training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}, {"dynamo": True, "optimize": False})
    for how in hows:
        try:
            with warnings.catch_warnings():  # of what every module is told: this exporter is the older one, and BatchNorm's count of batches is left out
                warnings.filterwarnings("ignore", "You are using the legacy TorchScript-based ONNX export", DeprecationWarning)
                warnings.filterwarnings("ignore", "ONNX Preprocess - Removing mutation from node aten::add_ on block input: '.*num_batches_tracked'")
                torch.onnx.export(net, arguments, str(path), **_names(net, arguments), **how)
            return path
        except Exception as error:  # whatever exporters throw
            said.append(f"{'present' if how['dynamo'] else 'legacy'} exporter: {str(error).strip().splitlines()[0] if str(error).strip() else type(error)}")
    raise Error("the module cannot be exported; " + "; ".join(said))


class Source:
    """What a trainer is made of: a module with an example, or an ONNX file; and flags. The compiler makes its library, and the report of the library's plan."""

    def __init__(self, model: torch.nn.Module | str | os.PathLike[str], example: Any, options: Mapping[str, Any], notes: Callable[[str], object]):
        self._options, self._notes, self._example = dict(options), notes, example
        self._path = pathlib.Path(model) if isinstance(model, (str, os.PathLike)) else None
        self._module: Any = None if self._path else model
        self._shown = str(self._path or type(model).__name__)
        self._made_of: object = None

    def library(self) -> pathlib.Path:
        with self._file() as (path, options):
            library = build(path, options, self._notes, self._shown)
        self._made_of = library.parent.name if self._path else self._identity()
        return library

    def report(self, output: str) -> None:
        if self._identity() != self._made_of:
            raise UsageError(f"{self._shown} is no longer what this trainer was compiled from, or the compiler is another one; compile it again")
        with self._file() as (path, options):
            _run(find_compiler(), path, [*flags_of(options), "--emit=report"], output, self._notes, {str(path): self._shown})

    @contextlib.contextmanager
    def _file(self) -> Iterator[tuple[pathlib.Path, Mapping[str, Any]]]:
        """The ONNX file and its flags. A module is exported each time: its file holds all weights once more."""
        if self._path:
            yield self._path, self._options
            return
        with tempfile.TemporaryDirectory() as folder:
            path = export(self._module, self._example, folder)
            yield path, roles(self._module, path, self._options)

    def _identity(self) -> object:
        """What plans depend on: not the weights of a module, which it gets back from its trainer."""
        compiler, flags = find_compiler(), flags_of(self._options)
        if self._path:
            return _digest(self._path, [*flags, *LIBRARY], compiler)
        tensors = [*self._module.named_parameters(), *self._module.named_buffers()]
        return str(self._module), [(name, tuple(one.shape), one.requires_grad) for name, one in tensors], [_by_content(flag) for flag in flags], compiler.stat().st_mtime_ns
