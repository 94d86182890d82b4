# SPDX-License-Identifier: Apache-2.0
"""Values of the caller as arrays that a library can read: without a copy where they are dense and of the right type already."""
import numpy as np


def to_array(values, kind):
    """`values`: an array, a tensor of PyTorch or of whoever speaks DLPack, or nested lists. Numbers of other widths are converted; what would lose
    something (fractions for whole numbers) is refused."""
    if hasattr(values, "detach"):  # of PyTorch: lazy signs and conjugates, and types that numpy lacks
        values = values.detach().resolve_conj().resolve_neg()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack__"):
        if values.__dlpack_device__()[0] != 1:
            values = values.cpu()
        values = np.from_dlpack(values)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or (kind == "int64" and array.dtype.kind == "f"):
        raise TypeError(f"values of type {array.dtype} for an input of type {kind}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError("a whole number above 2^63 - 1")
    return np.asarray(array, kind, order="C")  # ascontiguousarray makes a dimension of a single number


def named(values, inputs):
    """(name, array) for each of `inputs`, as the plan describes them; `values` is one array, a sequence in their order, or a dict by name."""
    if values is None:
        values = {}
    if not isinstance(values, dict):
        values = values if isinstance(values, (tuple, list)) and len(inputs) != 1 else [values]
        if len(values) != len(inputs):
            raise ValueError(f"{len(values)} values for the inputs {[one['name'] for one in inputs]}")
        values = dict(zip((one["name"] for one in inputs), values))
    unknown = set(values) - {one["name"] for one in inputs}
    missing = [one["name"] for one in inputs if one["name"] not in values]
    if unknown or missing:
        raise ValueError(f"inputs are {[one['name'] for one in inputs]}; missing {missing}, unknown {sorted(unknown)}")
    return [(one["name"], to_array(values[one["name"]], one["type"])) for one in inputs]
