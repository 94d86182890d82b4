#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What in-place forms that programs do not have would gain, from placed programs alone.

    tools/bench/in_place.py PLACED.mlir...

concat: every input of a concat, and every concat that an input is shared with, lies in one slot as large as the largest of them and live as
long as all of them. normalization: what is inverted gives its slot to what the activation after it writes. Prints the most live bytes as they
are and as they would be, base included, and the bytes that concats move in a step."""
import re
import sys


def slot(size):
    return (size + 255) // 256 * 256


class Program:
    def __init__(self, path):
        with open(path) as file:
            text = file.read()
        text = text[text.index("sched.program @step"):].split("sched.program @evaluate")[0]
        self.base = int(re.search(r"base\((\d+)\)", text)[1])
        self.lives = {}
        for name, size, first, last in re.findall(r'%(\S+) = sched.buffer "[^"]*" device bytes\((\d+)\).*? live\((\d+), (\d+)\)', text):
            self.lives[name] = (int(size), int(first), int(last))
        self.steps = re.findall(r"sched\.(?:run|copy) .*", text)

    def operands(self, step, kind):
        found = re.search(kind + r"\(([^()]*(?:\([^()]*\)[^()]*)*?)\) (?:outs|scratch|versions)", self.steps[step])
        return re.findall(r"%([\w.]+) :", found[1]) if found else []

    def runs(self, kernel):
        return [k for k, step in enumerate(self.steps) if f'"{kernel}"' in step]

    def peak(self, lives):
        change = [0] * (len(self.steps) + 2)
        for size, first, last in lives.values():
            change[first] += slot(size)
            change[last + 1] -= slot(size)
        most = now = 0
        for bytes_ in change:
            now += bytes_
            most = max(most, now)
        return self.base + most

    def with_views(self):
        group = {name: name for name in self.lives}

        def find(name):
            while group[name] != name:
                name = group[name]
            return name

        moved = 0
        for k in self.runs("concat"):
            out = self.operands(k, "outs")[0]
            moved += 2 * self.lives[out][0]
            for name in self.operands(k, "ins"):
                if name in group:
                    group[find(name)] = find(out)
        merged = {}
        for name, (size, first, last) in self.lives.items():
            old = merged.get(find(name), (0, first, last))
            merged[find(name)] = (max(size, old[0]), min(first, old[1]), max(last, old[2]))
        return moved, self.peak(merged)

    def normalized_in_place(self):
        lives = dict(self.lives)
        count = 0
        for k in self.runs("save_guarded_channels"):
            x = self.operands(k, "ins")[0]
            readers = [r for r in self.runs("fused") if self.operands(r, "ins")[:1] == [x]]
            if readers:
                size, first, last = lives[x]
                lives[x] = (size, first, min(last, readers[0]))
                count += 1
        return count, self.peak(lives)


for path in sys.argv[1:]:
    program = Program(path)
    now = program.peak(program.lives)
    moved, views = program.with_views()
    inverted, overwritten = program.normalized_in_place()
    print(f"{path}: {now} bytes; {len(program.runs('concat'))} concats move {moved} bytes, as views {views} bytes ({100 * views / now:.1f} %); "
          f"{inverted} inverted, in place {overwritten} bytes ({100 * overwritten / now:.1f} %)")
