#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which files may include which: the layers of the project, for lint.py."""
import pathlib
import re

CXX = (".cpp", ".h", ".cu", ".cuh")
# What the files of a folder may include of the project, the innermost folder first; tools and tests may include everything.
MAY_INCLUDE = {
    "passes/planner": ("passes/planner", "ir/OpKind.h", "runtime"),
    "passes/strategies": ("passes/planner", "passes/strategies", "runtime/Result.h"),
    "runtime": ("runtime",),
    "ir": ("ir", "runtime"),
    "frontend": ("frontend", "ir", "runtime"),
    "passes": ("passes", "ir", "runtime"),
    "codegen": ("codegen", "ir", "runtime"),
}
KNOW_NO_MLIR = ("runtime", "passes/planner", "passes/strategies", "test/unit/runtime", "test/unit/cuda", "test/unit/planner")
# What the files of a folder may not include although it lies in a folder that they may: a target's kernels know nothing of the program around them.
MAY_NOT_INCLUDE = {
    "runtime/host": ("runtime/program", "runtime/data", "runtime/library", "runtime/cuda"),
    "runtime/cuda": ("runtime/program", "runtime/data", "runtime/library", "runtime/host"),
    "runtime/kernels": ("runtime/program", "runtime/data", "runtime/library", "runtime/host", "runtime/cuda"),
    "runtime/program": ("runtime/library",),
    "runtime/data": ("runtime/library",),
}
PICKS_A_TARGET = "runtime/Fused.h"  # includes that of the target that a program is compiled for
PROJECT = ("frontend/", "ir/", "passes/", "codegen/", "runtime/", "tools/", "test/")
STAND_INS = "test/unit/cuda/emulator"  # headers of the CUDA toolkit, found by their own names
EXAMPLES = ("examples", "test/tools/package", "test/execute/inputs")  # of users' programs, which lie elsewhere


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def inside(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def check_includes(path, text, report):
    home = next((folder for folder in MAY_INCLUDE if inside(path, [folder])), None)
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)', text, re.M):
        quoted, name = match[1] == '"', match[2]
        line = line_of(text, match.start())
        if inside(path, KNOW_NO_MLIR) and re.match(r"(mlir|llvm)[/-]", name):
            report(path, line, f"includes {name}, but this folder knows nothing of MLIR; move what needs it to passes/")
        if home and name.startswith(PROJECT) and not inside(name, MAY_INCLUDE[home]):
            allowed = ", ".join(MAY_INCLUDE[home])
            report(path, line, f"includes {name}, but {home} may include {allowed} only; move what both need there")
        for folder, others in MAY_NOT_INCLUDE.items():
            if inside(path, [folder]) and inside(name, others):
                report(path, line, f"includes {name}, but {folder} may not include {', '.join(others)}; move what both need out of these")
        if quoted and ("/" not in name or name.startswith(".")) and not inside(path, [STAND_INS, *EXAMPLES]):
            report(path, line, f"includes {name} by a relative path; write its path from the root of the repository")


def check_directions(files, report):
    """No two folders include files of each other, so that one can be read before the other."""
    includes = {}
    for path in files:
        if not path.endswith(CXX + (".td",)) or path == PICKS_A_TARGET or not path.startswith(tuple(MAY_INCLUDE)):
            continue
        text = read(path)
        for match in re.finditer(r'^[ \t]*#?[ \t]*include[ \t]*"([^"]+)', text, re.M):
            pair = str(pathlib.PurePath(path).parent), str(pathlib.PurePath(match[1]).parent)
            if match[1].startswith(PROJECT) and pair[0] != pair[1]:
                includes.setdefault(pair, (path, line_of(text, match.start()), match[1]))
    for (here, there), (path, line, name) in sorted(includes.items()):
        if (there, here) in includes and here < there:
            other = includes[there, here]
            report(path, line, f"includes {name}, but {other[0]}:{other[1]} includes {other[2]}; move what both need to one of the folders")
