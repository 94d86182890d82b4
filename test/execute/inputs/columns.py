#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""columns.py DROP WHOLE: the gradients of w [4,3] have equal columns, not all 0, and are not the same in both files."""
import json
import struct
import sys


def gradient(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8:8 + length])["w"]["data_offsets"]
    values = struct.unpack("<12f", data[8 + length + begin:8 + length + end])
    return [values[row * 3:row * 3 + 3] for row in range(4)]


drop, whole = gradient(sys.argv[1]), gradient(sys.argv[2])
for rows in (drop, whole):
    assert all(row[0] == row[1] == row[2] for row in rows), rows
    assert any(row[0] != 0 for row in rows), rows
assert drop != whole, drop
