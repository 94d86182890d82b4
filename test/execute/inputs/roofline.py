# SPDX-License-Identifier: Apache-2.0
"""Checks that the parts of what --roofline printed add up, and that the work of every op is known: roofline.py OUTPUT"""
import re
import sys

ROW = re.compile(r" *(-?[\d.]+) +(-?[\d.]+) %( +[-\d.]+)( +[-\d.]+)( +[-\d.]+)(?: %)?( +[-\d.]+)(?: %)?( +[-\d.]+)(?:  (.*))?$")


def numbers(row):
    """ms, share of the step, GFLOP, MiB, shares of both peaks, lost ms, and what the row is of."""
    return [None if cell.strip() == "-" else float(cell) for cell in row.groups()[:7]] + [row[8]]


def close(parts, whole, digit):
    """Each was rounded to `digit`."""
    assert abs(sum(parts) - whole) <= digit * (len(parts) + 1), (sum(parts), whole)


sections = [[]]
for line in open(sys.argv[1]).read().split("roofline:", 1)[1].splitlines():
    if not line:
        sections.append([])
    elif row := ROW.match(line):
        sections[-1].append(numbers(row))
ops, kinds, (between, step), losers = sections
unknown = [op for op in ops if None in op and not op[-1].startswith("clear ")]  # what an op's kernel does first is part of its work
assert len(ops) > 20 and not unknown, unknown
ops = [op if None not in op else [op[0], op[1], 0, 0, 0, 0, 0, op[-1]] for op in ops]
kinds = [kind if None not in kind else [kind[0], kind[1], 0, 0, 0, 0, 0, kind[-1]] for kind in kinds]
for column, digit in ((0, 1e-3), (2, 1e-3), (3, 1e-2), (6, 1e-3)):
    close([kind[column] for kind in kinds], sum(op[column] for op in ops), digit * len(ops))
close([op[0] for op in ops] + [between[0]], step[0], 1e-3)
close([op[2] for op in ops], step[2], 1e-3)
close([op[3] for op in ops], step[3], 1e-2)
assert kinds == sorted(kinds, key=lambda kind: -kind[0])
assert len(losers) == 10 and losers == sorted(losers, key=lambda op: -op[6])
assert losers[0][6] == max(op[6] for op in ops)
