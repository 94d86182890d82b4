# SPDX-License-Identifier: Apache-2.0
"""Whether the base of a program with shares is smaller by what they leave out: CHECKPOINT RANKS WHOLE.jsonl SHARED.jsonl [parameters]
Of adam's states, or of parameters that are no vectors and have 4 KiB or more."""
import json
import math
import struct
import sys

checkpoint, ranks = sys.argv[1], int(sys.argv[2])
whole, shared = (json.loads(open(path).readline())["device_base_bytes"] for path in sys.argv[3:5])
with open(checkpoint, "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))


def slot(elements):
    return -(-4 * elements // 256) * 256


def is_shared(name, shape):
    if sys.argv[5:] == ["parameters"]:
        return "/" not in name and len(shape) > 1 and 4 * math.prod(shape) >= 4096
    return "/exp_avg" in name


saved = 0
for name, tensor in header.items():
    if name != "__metadata__" and is_shared(name, tensor["shape"]):
        elements = math.prod(tensor["shape"])
        saved += slot(elements) - slot(-(-elements // ranks))
assert saved > 0 and whole - shared == saved, (whole, shared, saved)
