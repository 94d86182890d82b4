# SPDX-License-Identifier: Apache-2.0
"""Whether the base of a program with shared states is smaller by what the shares leave out: CHECKPOINT RANKS WHOLE.jsonl SHARED.jsonl"""
import json
import struct
import sys

checkpoint, ranks = sys.argv[1], int(sys.argv[2])
whole, shared = (json.loads(open(path).readline())["device_base_bytes"] for path in sys.argv[3:])
with open(checkpoint, "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))


def slot(elements):
    return -(-4 * elements // 256) * 256


saved = 0
for name, tensor in header.items():
    if "/exp_avg" in name:
        elements = (tensor["data_offsets"][1] - tensor["data_offsets"][0]) // 4
        saved += slot(elements) - slot(-(-elements // ranks))
assert saved > 0 and whole - shared == saved, (whole, shared, saved)
