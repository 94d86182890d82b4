#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/reference/coverage.md: which ONNX ops are imported, as what, and for what a node of them is refused.

    tools/coverage.py ONNX_ROOT

Everything is read from the sources: op types from the tables of frontend/*.cpp, the train ops that an importer makes and the reasons for which it
refuses a node from its body and those of the functions that it calls, gradients and kernels from ir/*.cpp, who takes bf16 from ir/*.td, targets from
runtime/host and runtime/cuda, versions of ops from the ONNX library's headers, tests from the lists of test/models."""
import pathlib
import re
import sys

CALL = re.compile(r"\b(\w+)(?:<[^<>()]*>)?\(")
FUNCTION = re.compile(r"^(?:template <[^>]*> )?[\w:<>,&* ]+?[ &*](?:\w+::)?(\w+)\(([^;{}]*)\)(?: const)? \{( [^\n]* \}$|\n.*?^\})", re.M | re.S)
HEAD = """# ONNX ops

What `sluicec` imports, as its sources say it (`tools/lint.sh --fix` writes this page). Models of opset {} to {} are read. `sluicec --check MODEL.onnx` tells
all that stands in the way of one model.
"""
TABLE = """
## Trained ops

Versions are those of the op in ONNX's opsets that models may hold. A gradient flows where all train ops have one, but for casts of integers. *host* and *cuda* say that the target has
the kernels, or prints them; *bf16*, that `--precision=bf16` computes the op in it, else casts stand around it. Tests: *gradients* of
`test/models/make_gradients.py`, *results* of ONNX's own backend tests (`test/models/backend_ops.py`).

| ONNX op | versions | train ops | gradient | host | cuda | bf16 | tests |
|---|---|---|---|---|---|---|---|"""
STORED = """
## Weights in fewer bits

Matrices of a file that these ops bring are held as they lie there, and fixed ([fine-tuning](../fine-tuning.md#frozen-weights-in-fewer-bits)): """
REASONS = """
## What is refused

Forms of these ops that end in an error, which names the node and says so:
"""
KNOWN = """
## Values known at compile time

Shapes, axes, masks and what exporters compute from them are folded where all operands are known: """
TAKEN = """
## Taken apart

Control flow, sequences and optionals, where what decides is known when compiling: bodies are put in place of their node, once a trip, and the
tensors of a sequence are known by their names. Refused where it is data, with the name of what would have to be known: """
REST = """
## Not imported

Those of these ops that ONNX defines as compositions of imported ones are taken apart and imported so; nodes of all others are refused: """


def read(pattern):
    return {str(path): path.read_text() for path in sorted(pathlib.Path(".").glob(pattern))}


def listed(names):
    return ", ".join(f"`{name}`" for name in sorted(names)) + "."


class Importers:
    """Op types of the frontend's tables, and what their importers do."""
    def __init__(self):
        sources = read("frontend/*.cpp")
        self.functions = {}  # (file, name) -> (parameters, body)
        self.places = {}  # name -> the first file that has it
        self.table = {}  # op type -> (file, importer, its template arguments)
        self.folded, self.taken = set(), set()
        for path, text in sources.items():
            if "/Constant" in path:
                self.folded |= set(re.findall(r'^ +\{"(\w+)", \w', text, re.M)) | set(re.findall(r'table\["(\w+)"\]', text))
                continue
            if "TakeAparts &table" in text:
                self.taken |= set(re.findall(r'table\["(\w+)"\] = take', text))
                continue
            for name, parameters, body in FUNCTION.findall(text):
                self.functions.setdefault((path, name), (parameters, body))
                self.places.setdefault(name, path)
            for op, importer, arguments in re.findall(r'table\["(\w+)"\] = (import\w+)(?:<(.*?)>)?;', text):
                self.table[op] = path, importer, arguments
            if left := set(re.findall(r'table\["(\w+)"\]', text)) - set(self.table):
                sys.exit(f"{path}: the rows of {', '.join(sorted(left))} are not read as table[\"Op\"] = importOp; give the importer a name")
        self.folded |= set(re.findall(r'type == "(\w+)"', self.functions["frontend/ImportNode.cpp", "importUnknown"][1]))

    def called(self, path, body):
        """Functions that a body in a file calls but other importers; those of its own file hide others."""
        for call in CALL.findall(body):
            place = path if (path, call) in self.functions else self.places.get(call)
            if place and not call.startswith("import"):
                yield place, call

    def bodies(self, path, body, seen):
        """The body and those of all that it calls."""
        for function in self.called(path, body):
            if function not in seen:
                seen.add(function)
                body += self.bodies(function[0], self.functions[function][1], seen)
        return body

    def own(self, op):
        """Of one op: a boolean template argument takes one of two branches."""
        path, importer, arguments = self.table[op]
        body = self.functions[path, importer][1]
        if first := re.match(r"(true|false)\b", arguments):
            body = re.sub(r"if constexpr \(\w+\) \{(.*?)\n  \} else \{(.*?)\n  \}", lambda m: m[1 if first[1] == "true" else 2], body, flags=re.S)
        return f"<{arguments}>" + self.bodies(path, body, set())

    def train_ops(self, op):
        made = re.findall(r"<train::(\w+)Op\b|train::(\w+)Op::create\(", re.sub(r"isa(_and_nonnull)?<[^>]*>|getDefiningOp<[^>]*>|dyn_cast<[^>]*>", "", self.own(op)))
        return sorted({a or b for a, b in made} - {"Read", "Variable", "UpdateStatistics"})

    def reasons(self, op):
        """Errors of the importer and the helpers that see its node, with the words of the node left out."""
        path, importer, _ = self.table[op]
        body = self.functions[path, importer][1]
        helpers = [self.functions[function] for function in dict.fromkeys(self.called(path, body))]
        texts = [body, *(helper for parameters, helper in helpers if parameters.startswith("NodeImport &"))]
        return list(dict.fromkeys(reason for text in texts for reason in errors_of(text)))


def errors_of(body):
    """The sentences of node.error(...): literals as they are, everything else as an ellipsis."""
    for at in re.finditer(r"node\.error\(", body):
        depth, parts, rest = 1, [], at.end()
        for token in re.finditer(r'"((?:[^"\\]|\\.)*)"|[()]|[^"()\s]+', body[at.end():]):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if depth == 0:
                break
            parts.append(token[1] if token[1] is not None and depth == 1 else "…" if token[0] != "+" else "")
        sentence = re.sub(r"…+", "…", "".join(parts)).strip()
        if re.search(r"[a-z]{3}", sentence):
            yield sentence.replace("|", "\\|").replace("\\\"", '"')


class TrainOps:
    """What the dialect says of its ops: elementwise ones are printed as kernels, views need none, others call a class of the runtime."""
    def __init__(self):
        definitions = "".join(read("ir/*.td").values())
        rules = "".join(read("ir/*.cpp").values())
        heads = dict(re.findall(r"^(?:def|class) (Train_\w+)(?:<[^{;]*?>)? : (.*?)[{;]$", definitions, re.M | re.S))
        self.traits = {name[6:-2]: self.inherited(name, heads) for name in re.findall(r"^def (Train_\w+Op) :", definitions, re.M)}
        self.mnemonic = {name: re.search(r'"(\w+)"', head)[1] for name, head in self.traits.items()}
        self.elementwise = {name for name, head in self.traits.items() if "Train_ElementwiseOp" in head}
        # The frontend casts integers alone, which have no gradient.
        self.gradients = {"Cast", *re.findall(r"^(?:SINGLE|GRADIENT|LOSS)\((\w+)Op\b", rules, re.M), *re.findall(r"(\w+)Op::buildGradients\(", rules)}
        self.kernels = {name: self.classes(body, rules) for name, body in re.findall(r"^KERNEL\((\w+)Op\) \{(.*?\}\n|.*?^\})", rules, re.M | re.S)}
        self.defined = {target: self.methods(target) for target in ("host", "cuda")}

    @staticmethod
    def inherited(name, heads):
        """Bases and traits of a definition, and those of its bases."""
        head = heads[name]
        base = re.match(r"\w+", head)[0]
        return head + (TrainOps.inherited(base, heads) if base in heads else "")

    @staticmethod
    def methods(target):
        """Classes of which the target's files, or what they include of runtime/kernels, define a method."""
        texts = "".join(read(f"runtime/{target}/*.c*").values())
        texts += "".join(pathlib.Path(header).read_text() for header in set(re.findall(r'#include "(runtime/kernels/\w+\.h)"', texts)))
        return set(re.findall(r"^(?:\w[\w:]* )?(\w+)::\w+\(", texts, re.M))

    @staticmethod
    def classes(body, rules):
        """Classes of the kernels that a rule calls, itself or by a helper of its file."""
        helpers = [match[1] for call in CALL.findall(body) for match in [re.search(rf"KernelCalls {call}\([^;{{]*\) \{{(.*?)^\}}", rules, re.M | re.S)] if match]
        return set(re.findall(r'object\("(\w+)"', body + "".join(helpers)))

    def runs(self, name, target):
        return name in self.elementwise or self.kernels.get(name, set()) <= self.defined[target]

    def bf16(self, name):
        return name in self.elementwise or "PrecisionAware" in self.traits[name] or "OwnKernel" not in self.traits[name]


def versions(root):
    """Versions of every op of the default domain, oldest first."""
    text = (pathlib.Path(root) / "include/onnx/defs/operator_sets.h").read_text()
    found = {}
    for version, op in re.findall(r"^class ONNX_OPERATOR_SET_SCHEMA_CLASS_NAME\(Onnx, (\d+), (\w+)\);", text, re.M):
        found.setdefault(op, set()).add(int(version))
    return {op: sorted(numbers) for op, numbers in found.items()}


def main():
    importers, ops, known = Importers(), TrainOps(), versions(sys.argv[1])
    oldest, newest = (int(n) for n in re.search(r"oldestOpset = (\d+), newestOpset = (\d+)", pathlib.Path("frontend/OnnxFile.cpp").read_text()).groups())
    gradients = set(re.findall(r'"([A-Z]\w+)"', pathlib.Path("test/models/gradient_cases.py").read_text()))
    results = set(re.search(r'OPS = """(.*?)"""', pathlib.Path("test/models/backend_ops.py").read_text(), re.S)[1].split())
    said = ("no", "yes")
    print(HEAD.format(oldest, newest) + TABLE)
    for op in sorted(importers.table):
        made = importers.train_ops(op)
        numbers = [n for n in known[op] if n <= newest]
        first = max([n for n in numbers if n <= oldest], default=numbers[0])
        row = [f"`{op}`", ", ".join(str(n) for n in numbers if n >= first), ", ".join(ops.mnemonic[name] for name in made) or "none",
               said[all(name in ops.gradients for name in made)], *(said[all(ops.runs(name, target) for name in made)] for target in ("host", "cuda")),
               said[all(ops.bf16(name) for name in made)], ", ".join([word for word, tested in (("gradients", gradients), ("results", results)) if op in tested]) or "none"]
        print("| " + " | ".join(row) + " |")
    stored = re.findall(r'\{"([\w.]*)", "(\w+)", \d, \d, \d, \w+\}', pathlib.Path("frontend/StoredForms.cpp").read_text())
    print(STORED + listed(f"{domain}.{op}" if domain else op for domain, op in stored))
    print(REASONS)
    for op in sorted(importers.table):
        if reasons := importers.reasons(op):
            print(f"- `{op}`: " + "; ".join(reasons))
    print(KNOWN + listed(importers.folded))
    print(TAKEN + listed(importers.taken))
    print(REST + listed(op for op in known
                        if op not in importers.table and op not in importers.folded | importers.taken and min(known[op]) <= newest))


main()
