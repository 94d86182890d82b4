# SPDX-License-Identifier: Apache-2.0
"""Compares two placed programs of one model: what the first copies to host memory, 16 KiB or more, the second copies as well, and half as many bytes.

    halved.py wide.mlir narrow.mlir"""
import re
import sys

BUFFER = re.compile(r"sched\.buffer \"([^\"]+)\" device bytes\((\d+)\)")
COPY = re.compile(r"sched\.copy d2h %(\w+) ->")


def copied(path):
    text = open(path).read()
    sizes = {name: int(size) for name, size in BUFFER.findall(text)}
    return {name: sizes[name] for name in COPY.findall(text) if name in sizes}


wide, narrow = copied(sys.argv[1]), copied(sys.argv[2])
large = [name for name, size in wide.items() if size >= 16384]
wrong = [name for name in large if 2 * narrow.get(name, 0) != wide[name]]
for name in wrong:
    print(f"halved: {name}: {wide[name]} bytes in fp32, {narrow.get(name, 'not copied')} in bf16")
print(f"halved: {len(large) - len(wrong)} of {len(large)} copies have half the bytes")
sys.exit(1 if wrong or not large else 0)
