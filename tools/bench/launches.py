#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Launches and device memory traffic of one step of a cuda program, counted from the scheduled program.

    sluicec MODEL --target=cuda ... --emit=placed -o step.mlir
    tools/bench/launches.py [NAME=]step.mlir...     # a table with two columns for each file
    tools/bench/launches.py --total step.mlir       # the launches alone

A run counts what its kernels launch (the rules below, which test/execute/emulated-launches.test compares with what the emulator launches), and the bytes of
what it reads and writes once each, partial sums twice. What a convolution or a matrix product moves is cuDNN's and cuBLASLt's business and not counted;
what our kernels do around them, turning weights, adding biases, means from sums, has a line of its own. What the epilogues of convolutions and of products read and
write beside what these alone would have one, too, and are no part of `all`, the bytes of our kernels, but of the last line. A convolution that cuDNN runs in parts
launches more."""
import argparse
import collections
import re

WIDTH = {"f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i32": 4, "i8": 1, "f64": 8}
UPDATES = {"updateSgd", "updateAdam", "updateAdagrad", "updateRmsProp", "updateLion", "accumulateGradient", "averageWeights"}
PRODUCTS = {"Conv", "ConvNorm", "Matmul", "MatmulGelu", "Attention"}
EPILOGUES = {"ConvNorm": "epilogues of convolutions", "MatmulGelu": "epilogues of matrix products"}
PRODUCT_KERNELS = ("conv", "matmul", "attention")
SINGLE = {"Reorder", "UpdateStatistics", "MaxPool", "AveragePool", "Softmax", "Slab", "Lrn", "Resize", "BatchNormStatistics", "LayerNorm", "SumTo",
          "BroadcastTo", "Embedding", "Dropout", "LossAndGradient"}  # one launch a call
ID_TILE = 1024  # ids that a block orders, runtime/cuda/Cut.h
GATHERED = 48  # tensors of one launch, runtime/Gather.h
SEVERAL = {"Lamb": 3, "GradientNorm": 2}


def tensor_bytes(text):
    """Of tensor<8x4xf32, ...>."""
    *extents, element = text.split(",")[0].split("x")
    count = 1
    for extent in extents:
        count *= int(extent)
    return (count + 63) // 64 * 8 if element == "i1" else count * WIDTH[element]


def operands(line, kind):
    """(name, bytes) of the list after `kind`."""
    begin = line.index(f" {kind}(") + len(kind) + 2
    return [(name, tensor_bytes(type_)) for name, type_ in re.findall(r"%([\w$.-]+)(?: at \d+)? : tensor<([^>]*)>", line[begin:line.index(")", begin)])]


class Run:
    def __init__(self, line, scratches):
        self.kernel = re.match(r'\s*sched\.run \w+ "(\w+)"', line)[1]
        self.ins, self.outs = operands(line, "ins"), operands(line, "outs")
        self.calls = re.findall(r'#sched\.call<"(\w*)", \[((?:[^\[\]]|\[[^\]]*\])*)\], "(\w+)"((?:, <[^>]*>)*)>', line)
        self.sums = int((re.search(r"\] sums (\d+)", line) or [0, 0])[1])
        scratch = re.search(r"scratch\(%([\w$.-]+)\)", line)
        self.scratch = scratches.get(scratch[1], 0) if scratch else 0
        self.together = "sched.together" in line
        self.fused = " channels " in line

    def has(self, position):
        """Whether the call has the operand at this position."""
        return "none" not in self.calls[0][3].split(", ")[1 + position]

    def narrow(self):
        return "F16" in self.calls[0][1]

    def extra(self):
        """Launches and bytes of our own kernels in a product."""
        kernel, _, method, _ = self.calls[0]
        if kernel == "ConvNorm":  # sums become mean and rstd
            return (1, 2 * sum(size for _, size in self.outs[1:])) if method == "statistics" else (0, 0)
        if kernel == "Conv" and method == "backwardWeight":
            gradient = self.outs[0][1]
            if self.narrow():
                turn = (1, gradient + gradient // 2) if self.turned() and not self.leaves_halves() else (0, 0)
            else:
                turn = (1, 2 * gradient) if self.turned() else (0, 0)
            bias = (1, self.ins[0][1]) if self.has(3) else (0, 0)
            return turn[0] + bias[0], turn[1] + bias[1]
        if kernel == "Conv":
            turn = (1, 2 * self.ins[1][1]) if not self.narrow() and self.turned() else (0, 0)
            bias = (1, 2 * self.outs[0][1]) if method == "forward" and self.has(2) else (0, 0)
            return turn[0] + bias[0], turn[1] + bias[1]
        if kernel in ("Attention", "MatmulGelu"):
            return 0, 0
        beta, bias = (re.search(rf"\b{option} = {value}", self.calls[0][1]) for option, value in (("beta", "([-+0-9.e]+) : f32"), ("bias", r"array<i64: ([\d, ]+)>")))
        epilogue = not beta and bias and set(bias[1].split(", ")[:-1]) <= {"1"}  # beta 1, and a row, which cuBLASLt adds
        return (1, 2 * self.outs[0][1]) if self.has(2) and not epilogue else (0, 0)

    def leaves_halves(self):
        """Whether a weight gradient is the engine's own, which a cast turns."""
        elements = 1
        for extent in self.weight_shape():
            elements *= extent
        return self.outs[0][1] == 2 * elements

    def weight_shape(self):
        return [int(n) for n in re.findall(r"array<i64: ([\d, ]+)>", self.calls[0][1])[1].split(",")]

    def epilogue(self):
        """Bytes that cuDNN or cuBLASLt moves more than for the convolution or the product with its bias alone."""
        if not self.calls or self.calls[0][0] not in EPILOGUES:
            return 0
        beside = [] if self.calls[0][2] == "forward" else self.ins[2:]
        return sum(size for _, size in beside + self.outs[1:])

    def turned(self):
        """Whether the weights are turned for the engine: in 16 bits gradients are, whatever their extents; in f32 what has neither one channel nor one tap."""
        shape = self.weight_shape()
        taps = 1
        for extent in shape[2:]:
            taps *= extent
        return self.narrow() or (shape[1] != 1 and taps != 1)

    def launches(self):
        if self.fused:
            return 2 if any(size == 4 for _, size in self.outs[len(self.outs) - self.sums:]) else 1  # scalars have a second one
        total = 0
        for kernel, arguments, method, _ in self.calls:
            if kernel in PRODUCTS:
                total += 1 + self.extra()[0]
            elif kernel == "Loss":
                total += 2 if method == "forward" else 1
            elif method == "checkGradients":
                total += 1 + (arguments.count("<in ") + GATHERED - 1) // GATHERED
            elif kernel == "Embedding" and method == "backward":  # fills, orders tiles, merges them, adds
                total += 3 + ((self.ins[1][1] // WIDTH["i64"] - 1) // ID_TILE).bit_length()
            elif method == "clear":  # a fill
                pass
            elif method == "join":
                total += arguments.count("<in ")
            elif kernel in SEVERAL:
                total += SEVERAL[kernel]
            elif kernel in SINGLE or method in UPDATES:
                total += 1
            else:
                raise SystemExit(f"launches.py: no rule for {kernel or method}.{method}")
        return total

    def bytes(self):
        """Moved by our own kernels."""
        if self.kernel.startswith(PRODUCT_KERNELS):
            return self.extra()[1]
        partials = 2 * self.scratch if self.fused or self.kernel in ("batch_norm_statistics", "sum_to") else 0
        return sum(dict(self.ins).values()) + sum(size for _, size in self.outs) + partials

    def kind(self):
        if self.fused:
            return "elementwise, with sums" if self.sums else "elementwise"
        return self.kernel.replace("_", " ")


def runs(path):
    with open(path) as file:
        text = file.read()
    text = text[text.index("sched.program @step"):].split("sched.program @evaluate")[0]
    scratches = {name: int(size) for name, size in re.findall(r'%([\w$.-]+) = sched\.buffer "[^"]*" device bytes\((\d+)\)', text)}
    return [Run(line, scratches) for line in text.splitlines() if re.match(r"\s*sched\.run ", line)]


def table(path):
    """By kind: [launches, bytes]."""
    rows = collections.defaultdict(lambda: [0, 0])
    for run in runs(path):
        product = run.kernel.startswith(PRODUCT_KERNELS)
        if product:
            extra = run.extra()[0]
            rows["convolutions and matrix products"][0] += run.launches() - extra
            if run.epilogue():
                rows[EPILOGUES[run.calls[0][0]]][1] += run.epilogue()
            if extra:
                rows["around them: weights turned, biases"][0] += extra
                rows["around them: weights turned, biases"][1] += run.bytes()
            continue
        rows[run.kind()][0] += 0 if run.together else run.launches()
        rows[run.kind()][1] += run.bytes()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--total", action="store_true", help="print the launches of a step and nothing else")
    parser.add_argument("files", nargs="+", metavar="[NAME=]FILE")
    arguments = parser.parse_args()
    columns = [(name or path, table(path)) for name, _, path in (file.rpartition("=") for file in arguments.files)]
    if arguments.total:
        for _, rows in columns:
            print(sum(launches for launches, _ in rows.values()))
        return
    print("| kind of run |" + "".join(f" {name}: launches | {name}: GB |" for name, _ in columns))
    print("|---|" + "---|" * 2 * len(columns))
    kinds = sorted({kind for _, rows in columns for kind in rows}, key=lambda kind: -max(rows[kind][1] for _, rows in columns))
    for kind in kinds:
        print(f"| {kind} |" + "".join(f" {rows[kind][0]} | {rows[kind][1] / 1e9:.3f} |" for _, rows in columns))
    for name, left_out in (("all", set(EPILOGUES.values())), ("all and epilogues", set())):
        counted = [[row for kind, row in rows.items() if kind not in left_out] for _, rows in columns]
        print(f"| {name} |" + "".join(f" {sum(r[0] for r in rows)} | {sum(r[1] for r in rows) / 1e9:.3f} |" for rows in counted))


if __name__ == "__main__":
    main()
