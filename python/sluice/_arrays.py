# SPDX-License-Identifier: Apache-2.0
"""Values of the caller as arrays that a library can read: without a copy where they are dense and of the right type already. Each step comes through
here, so what needs no work is asked first."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

# What calls take: an array, a tensor of PyTorch or of whoever speaks DLPack, or nested lists, for a model of one input; for others a sequence of
# them in the order of the inputs, or a dict by their names.
Arrays = Union[npt.ArrayLike, Sequence[npt.ArrayLike], Mapping[str, npt.ArrayLike]]


def to_array(values: Any, kind: str, name: str = "values") -> npt.NDArray[Any]:
    """`values`: an array, a tensor of PyTorch or of whoever speaks DLPack, or nested lists. Numbers of other widths are converted; what would lose
    something (fractions for whole numbers) is refused by `name`."""
    if not isinstance(values, np.ndarray):
        if hasattr(values, "detach"):  # of PyTorch: on the processor without a copy, without lazy signs and conjugates, and types that numpy lacks
            values = (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy(force=True)
        elif hasattr(values, "__dlpack__"):
            values = np.from_dlpack(values if values.__dlpack_device__()[0] == 1 else values.cpu())
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or (kind == "int64" and array.dtype.kind == "f"):
        raise TypeError(f"'{name}' takes {kind}, not values of type {array.dtype}")
    if array.dtype.kind == "u" and array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"'{name}' holds a whole number above 2^63 - 1")
    return np.asarray(array, kind, order="C")  # ascontiguousarray makes a dimension of a single number


def named(values: Any, inputs: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, npt.NDArray[Any]]]:
    """(name, array) for each of `inputs`, the plan's descriptions by name; `values` is one array, a sequence in their order, or a dict by name."""
    if values is None:
        values = {}
    if not isinstance(values, dict):
        values = values if isinstance(values, (tuple, list)) and len(inputs) != 1 else [values]
        if len(values) != len(inputs):
            raise ValueError(f"{len(values)} values for the inputs {list(inputs)}")
        values = dict(zip(inputs, values))
    elif values.keys() != inputs.keys():
        missing, unknown = [name for name in inputs if name not in values], sorted(set(values) - set(inputs), key=str)
        raise ValueError(f"inputs are {list(inputs)}; missing {missing}, unknown {unknown}")
    return [(name, to_array(values[name], one["type"], name)) for name, one in inputs.items()]
