# SPDX-License-Identifier: Apache-2.0
"""Finds what of a program for halves is of floats though nothing asks for that: products that multiply floats, kernels of products that were made for floats, and activations that are kept as floats.

    narrow.py BF16|FP16 program.cpp...

The type's name in the program is BF16 or F16. Prints how many of each kind are of halves, and fails where one is not."""
import collections
import re
import sys

PRODUCTS = ("conv", "conv_backward_data", "conv_backward_weight", "matmul", "matmul_gelu", "matmul_gelu_backward", "attention", "attention_backward")
KERNELS = ("Conv", "ConvNorm", "Matmul", "MatmulGelu", "Attention")
TENSOR = re.compile(r"constexpr Tensor (\w+) = \w+\(0x[0-9a-f]+, \{([^}]*)\}([^;]*);")
WORK = re.compile(r'\{"([^"]*)", "(\w+)", \d+, [\d.]+, [\d.]+, Precision::(\w+)\}')
KERNEL = re.compile(rf"const ({'|'.join(KERNELS)}) (\w+)\{{(.*?)\}};\n", re.S)
KEPT = re.compile(r'\{"(\w+)", (\w+), Comparison::\w+\}')
# What attention adds to its scores is of floats.
MASKS = ("Expand",)
# Below that tensors are statistics of rows and channels, which are floats.
LEAST = 512


def look(path, precision):
    """(kind, name, whether it is of halves) of all that is to be."""
    text = open(path).read()
    name = {"BF16": "BF16", "FP16": "F16"}[precision]
    for node, op, arithmetic in WORK.findall(text):
        if op in PRODUCTS:
            yield op, node, arithmetic == precision
    for kernel, variable, arguments in KERNEL.findall(text):
        yield kernel, variable, f"DataType::{name}" in arguments
    types = {}
    for variable, extents, rest in TENSOR.findall(text):
        elements = 1
        for extent in extents.split(","):
            elements *= int(extent or 1)
        stored = re.search(r"DataType::(\w+)", rest)
        types[variable] = (elements, stored.group(1) if stored else "F32")
    for kept, variable in KEPT.findall(text):
        elements, stored = types[variable]
        if elements >= LEAST and not any(mask in kept for mask in MASKS):
            yield "kept activation", kept, stored != "F32"


precision, failed, kept = sys.argv[1], False, 0
for path in sys.argv[2:]:
    counts, wrong = collections.Counter(), []
    for kind, name, narrow in look(path, precision):
        counts[kind] += narrow
        if not narrow:
            wrong.append(f"{kind} {name}")
    print(f"narrow: {path}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    for one in wrong:
        print(f"narrow: {path}: {one} is of floats")
    kept += counts["kept activation"]
    failed = failed or bool(wrong) or not any(counts[kernel] for kernel in KERNELS)
sys.exit(1 if failed or not kept else 0)
