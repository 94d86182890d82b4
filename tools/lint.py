#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The conventions of CONTRIBUTING that need parsing: includes, heads and sizes of files, and what .td files promise.

Reads the names of the files from standard input, prints a finding a line, `file:line: what is wrong; what to do`, and last how many files
and functions there are. C++ is read as clang-format leaves it, .td files as their descriptions are written: a constraint is a line `- C1: ...` in the
description of an op, interface, dialect or pass, its negative test a function `@conv_c1...` in a part of a .mlir file that expects an error.
"""
import ast
import pathlib
import re
import sys
from dataclasses import dataclass

from lint_cxx import Function, functions_of
from lint_includes import CXX, STAND_INS, check_directions, check_includes, inside, line_of, read

MOST_LINES = 360
MOST_FUNCTION_LINES = 60
MOST_CLASS_LINES = 200
MOST_PARAMETERS = 8
SPDX = "SPDX-License-Identifier: Apache-2.0"
SIZED = CXX + (".td", ".py", ".sh")

GENERATED = "test/codegen/golden"  # by the compiler, compared with what it writes
# Functions whose parameters others have chosen: MLIR gives verifiers of attributes all that a .td file declares, NVIDIA what stands in for its libraries.
SIGNATURES = re.compile(rf"ir/.*:\w+Attr::verify|{STAND_INS}/cu[^:]*:\w+")

findings = []


def report(path, line, text):
    findings.append(f"{path}:{line}: {text}")


# Files -----------------------------------------------------------------------------------------------------------------


def check_head(path, text):
    lines = (text.split("\n") + ["", ""])[:3]
    if path.endswith(CXX + (".td",)):
        if lines[0] != f"// {SPDX}":
            report(path, 1, f"does not open with its license; make '// {SPDX}' the first line")
        elif not re.match(r"// *\S", lines[1]):
            report(path, 2, "does not say what the file is for; let a comment follow the license")
    elif SPDX not in lines[0] + lines[1]:
        report(path, 1, f"does not open with its license; add '# {SPDX}' behind the interpreter")


SOURCE_NAME = re.compile(r"(?<![\w%/.*<>$-])((?:[\w.-]+/)*[A-Za-z][\w-]*\.(?:h|cpp|cu|td|py|sh|md|test|mlir))\b(?![\w.*])")
WRITTEN = ("program.cpp", "program.cu")  # by the compiler


def check_names(path, text, files):
    """Files that comments and pages name, by path, by the end of one, or by name alone."""
    texts = r"`[^`\n]+`|\]\([^)\s]+\)" if path.endswith(".md") else r"//.*"
    for match in re.finditer(texts, text):
        for name in SOURCE_NAME.findall("" if "://" in match[0] else match[0]):
            name = re.sub(r"^(\.\./)+", "", name)
            if name not in WRITTEN and not any(file == name or file.endswith("/" + name) for file in files):
                report(path, line_of(text, match.start()), f"names {name}, which does not exist; name the file that it became")


def check_menus(files):
    """Pages of the site, which are all but those beside sources, have a menu that names them."""
    menus = "tools/site.yml"
    named = re.findall(r"[\w./-]+\.md", read(menus)) if menus in files else []
    for path in files:
        if path.endswith(".md") and ("/" not in path or inside(path, ["docs", "examples"])) and named and path not in named:
            report(path, 1, f"is in no menu of the site; add it to {menus}")


# Sizes -----------------------------------------------------------------------------------------------------------------


def python_functions(path, text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(path, node.name, "", node.lineno, node.end_lineno, "")


def check_sizes(path, text, functions, classes):
    count = text.count("\n")
    if count > MOST_LINES:
        report(path, count, f"has {count} lines, more than {MOST_LINES}; split it where its subject changes")
    for each in functions:
        if each.length() > MOST_FUNCTION_LINES:
            report(path, each.first, f"{each.name} has {each.length()} lines, more than {MOST_FUNCTION_LINES}; give a part of it a name")
        if each.parameters > MOST_PARAMETERS and not SIGNATURES.fullmatch(f"{path}:{each.name}"):
            report(path, each.first, f"{each.name} has {each.parameters} parameters, more than {MOST_PARAMETERS}; give what belongs together a struct")
    for each in classes:
        if each.length() > MOST_CLASS_LINES:
            report(path, each.first, f"{each.name} has {each.length()} lines, more than {MOST_CLASS_LINES}; give one of its duties a class or file")


# What .td files promise ------------------------------------------------------------------------------------------------


@dataclass
class Definition:
    path: str
    line: int
    name: str  # ConvOp, without the dialect's prefix
    base: str  # class that it is a def of
    mnemonic: str
    text: str
    constraints: dict  # C1 -> line

    def field(self, name):
        match = re.search(rf"\blet {name} = (\[\{{.*?\}}\]|\"[^\n]*\")", self.text, re.S)
        return match[1].strip('[]{} \n"') if match else ""


def definitions_of(path, text):
    for match in re.finditer(r'^def (?:Train_|Sched_)?(\w+) : (\w+)(?:<"([^"]*)")?.*?(?=^def |^class |^#endif|\Z)', text, re.S | re.M):
        line = line_of(text, match.start())
        constraints = {}
        for constraint in re.finditer(r"^ *- ([A-Z]\d+): ", match[0], re.M):
            constraints[constraint[1]] = line + match[0].count("\n", 0, constraint.start())
        yield Definition(path, line, match[1], match[2], match[3] or "", match[0], constraints)


def is_op(definition):
    return definition.mnemonic and definition.name.endswith("Op")


def owner_of(definition):
    """Name that negative tests give to the owner of constraints, `conv` of @conv_c1; passes and dialects have letters of their own."""
    if is_op(definition):
        return definition.mnemonic
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", definition.name).lower()


def check_described(what, definition):
    for field in ("summary", "description"):
        if not definition.field(field):
            report(definition.path, definition.line, f"{what} has no {field}; write one")
    if "```mlir" not in definition.field("description"):
        report(definition.path, definition.line, f"{what} shows no example; end its description with one in ```mlir")


def check_ops(ops, tests):
    used = set(re.findall(r"\b(?:train|sched)\.\w+", "\n".join(tests.values())))
    for definition in ops:
        name = pathlib.Path(definition.path).name
        dialect = "sched" if name.startswith("Sched") else "train"
        op = f"{dialect}.{definition.mnemonic}"
        check_described(op, definition)
        if op not in used:
            report(definition.path, definition.line, f"{op} is in no lit test; add it to one under test/")


def check_passes(passes, files):
    flags = [definition.mnemonic.removeprefix("sluice-") for definition in passes]
    for definition, flag in zip(passes, flags):
        check_described(definition.mnemonic, definition)
        for wanted in (f"passes/{definition.name}.cpp", f"test/passes/{flag}.mlir", f"test/passes/{flag}-errors.mlir"):
            if wanted not in files:
                report(definition.path, definition.line, f"{definition.mnemonic} has no {wanted}; add it")
    for path in files:
        name = re.fullmatch(r"test/passes/([\w-]+)\.mlir", path)
        if name and not any(name[1] == flag or name[1].startswith(flag + "-") for flag in flags):
            report(path, 1, "is named after no pass; begin its name with a flag of passes/Passes.td without sluice-")


def verifier_text(definition, functions):
    """The functions that verify the definition, and those of their files and of ir/Rules that they call."""
    if definition.base == "Pass":
        return "\n".join(f.text for f in functions if f.path.rpartition("/")[0] in ("passes", "passes/analysis"))
    named = definition.field("verify")
    found = [f for f in functions if f.path.startswith("ir/") and (
        re.fullmatch(rf"{definition.name}::verify\w*", f.name) or (f.name == "INFER" and f.argument == definition.name)
        or (named and f.name.split("::")[-1] in re.findall(r"\w+", named)))]
    for caller in found:  # grows
        for callee in functions:
            near = callee.path in (caller.path, "ir/Rules.h", "ir/Rules.cpp") and callee.name != "INFER"
            if near and re.search(rf"\b{re.escape(callee.name)}[(<]", caller.text) and callee not in found:
                found.append(callee)
    return "\n".join(f.text for f in found)


def check_constraints(definitions, functions, tests):
    sections = [(path, section) for path, text in tests.items() if path.endswith(".mlir")
                for section in re.split(r"^// -----$", text, flags=re.M) if "expected-error" in section]
    named = {}
    for path, section in sections:
        for match in re.finditer(r"@(?:(\w+?)_)?([a-z]\d+)(?:_\w+)?\b", section):
            named.setdefault((match[1] or "", match[2].upper()), path)
    known = set()
    for definition in definitions:
        verifier = verifier_text(definition, functions) if definition.constraints else ""
        for number, (constraint, line) in enumerate(definition.constraints.items(), 1):
            where = f"{constraint} of {definition.mnemonic or definition.name}"
            if int(constraint[1:]) != number:
                report(definition.path, line, f"{where} is the {number}. in its list; number constraints from 1 without gaps")
            if not re.search(rf"//.*\b{constraint}\b", verifier):
                report(definition.path, line, f"{where} is cited by no verifier; check it and write '// {constraint}' there")
            own = constraint[0] == "C"  # other letters are one owner's alone
            owner = owner_of(definition) if own else ""
            known.add((owner, constraint))
            if not any(key[1] == constraint and (key[0] == owner or not own) for key in named):
                test = f"@{owner}_{constraint.lower()}" if own else f"@{constraint.lower()}"
                report(definition.path, line, f"{where} has no negative test; add {test} with the error that it expects")
    for (owner, constraint), path in sorted(named.items()):
        if constraint[0] == "C" and owner and (owner, constraint) not in known:
            report(path, 1, f"tests {constraint} of {owner}, which has no such constraint; name the test after one that exists")


# -----------------------------------------------------------------------------------------------------------------------


def main():
    files = sys.stdin.read().split()
    functions, definitions, tests = [], [], {}
    for path in files:
        if path.startswith("test/") and path.endswith((".mlir", ".test")):
            tests[path] = read(path)
        if path.endswith(CXX + (".td", ".md")) and not inside(path, [GENERATED]):
            check_names(path, read(path), files)
        if not path.endswith(SIZED) or (path.endswith(CXX) and inside(path, [GENERATED])):
            continue
        text = read(path)
        check_head(path, text)
        own, classes = [], []
        if path.endswith(CXX):
            check_includes(path, text, report)
            own, classes = functions_of(path, text, report)
            functions += own
        elif path.endswith(".py"):
            own = list(python_functions(path, text))
        elif path.endswith(".td"):
            definitions += definitions_of(path, text)
        check_sizes(path, text, own, classes)
    check_directions(files, report)
    check_menus(files)
    check_ops([d for d in definitions if is_op(d)], tests)
    check_passes([d for d in definitions if d.base == "Pass"], files)
    check_constraints(definitions, functions, tests)
    for finding in findings:
        print(finding)
    lengths = sorted(f.length() for f in functions) or [0]
    print(f"{sum(path.endswith(CXX) for path in files)} files of C++ with {len(functions)} functions of {lengths[len(lengths) // 2]} lines (p50), "
          f"{lengths[len(lengths) * 9 // 10]} (p90), {lengths[-1]} (longest)")


main()
