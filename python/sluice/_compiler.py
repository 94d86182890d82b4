# SPDX-License-Identifier: Apache-2.0
"""Finds sluicec, exports modules for it, and keeps the libraries that it makes by what they were made of."""
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

from ._abi import Error, error_of


def find_compiler():
    """$SLUICEC, the compiler beside this package in a build or an installation, or that of the PATH."""
    here = pathlib.Path(__file__).resolve().parent
    places = [os.environ.get("SLUICEC"), here / "bin/sluicec", here.parents[1] / "build/bin/sluicec", shutil.which("sluicec")]
    for place in places:
        if place and os.access(place, os.X_OK):
            return pathlib.Path(place)
    raise Error("there is no sluicec: build or install Sluice and put it into the PATH, or set SLUICEC to it")


def cache_folder():
    return pathlib.Path(os.environ.get("SLUICE_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sluice/libraries")


def flags_of(options):
    """Command-line flags of keyword arguments: batch=8 is --batch=8, fuse=True is --fuse, lists repeat their flag."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            flags.append(flag if one is True else f"{flag}={one}")
    return flags


def _processor():
    """What programs are built for by default: its instructions, and how many there are."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line for line in lines if line.startswith(("flags", "Features"))), ""), os.cpu_count()


def _by_content(flag):
    """A flag with a digest in the place of each file that it names."""
    return re.sub(r"[^=@,:]+", lambda word: hashlib.sha256(pathlib.Path(word[0]).read_bytes()).hexdigest() if os.path.isfile(word[0]) else word[0], flag)


def _digest(model, flags, compiler):
    """Of all that a library depends on: the model, the external data that it names, the files that flags name, compiler and processor."""
    text, state = model.read_bytes(), hashlib.sha256()
    state.update(text)
    # A StringStringEntryProto {"location": NAME} of a tensor.
    beside = {text[found.end():found.end() + found[1][0]].decode(errors="replace") for found in re.finditer(rb"\x0a\x08location\x12([\x01-\x7f])", text, re.S)}
    for path in sorted(model.parent / name for name in beside):
        if path.is_file():
            state.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    stat = compiler.stat()
    state.update(repr(([_by_content(flag) for flag in flags], str(compiler.resolve()), stat.st_size, stat.st_mtime_ns, _processor())).encode())
    return state.hexdigest()[:32]


def build(model, options, notes, shown=None):
    """The path of the library for an ONNX file, made unless the cache has it. `notes` hears the lines that the compiler prints; `shown` is what messages call the model."""
    compiler, model, flags = find_compiler(), pathlib.Path(model), flags_of(options)
    folder = cache_folder() / _digest(model, flags, compiler)
    library = folder / "libmodel.so"
    if library.exists():
        return library
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        done = subprocess.run([compiler, model, *flags, "--emit=library", "-o", f"{work}/model"], capture_output=True, text=True)
        if done.returncode != 0:
            said = done.stderr.strip().replace(str(model), shown or str(model))
            raise error_of(done.returncode, said.partition("sluicec: error: ")[2] or said)  # notes may stand before it
        for line in (done.stderr + done.stdout).splitlines():
            notes(line.replace(str(model), shown or str(model)))
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


def roles(module, model, options):
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


def _names(net, arguments):
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


def export(module, example, folder):
    """Writes a module of PyTorch in training form with the batch of the example; the path, and what the exporter said where one did not work."""
    import torch
    path, arguments = pathlib.Path(folder) / "model.onnx", example if isinstance(example, tuple) else (example,)
    net, said = copy.deepcopy(module), []  # tracing moves running statistics
    for how in ({"dynamo": False, "training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}, {"dynamo": True, "optimize": False}):
        try:
            with warnings.catch_warnings():  # of what every module is told: this exporter is the older one, and BatchNorm's count of batches is left out
                warnings.filterwarnings("ignore", "You are using the legacy TorchScript-based ONNX export", DeprecationWarning)
                warnings.filterwarnings("ignore", "ONNX Preprocess - Removing mutation from node aten::add_ on block input: '.*num_batches_tracked'")
                torch.onnx.export(net, arguments, str(path), **_names(net, arguments), **how)
            return path
        except Exception as error:  # whatever exporters throw
            said.append(f"{'present' if how['dynamo'] else 'legacy'} exporter: {str(error).strip().splitlines()[0] if str(error).strip() else type(error)}")
    raise Error("the module cannot be exported; " + "; ".join(said))
