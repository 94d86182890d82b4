# SPDX-License-Identifier: Apache-2.0
"""Checks that a gradient is that of the same random numbers as the loss, mean((gain r)^2) with gain 0.5: LOG GRADIENTS. Losses differ from step to step."""
import json
import struct
import sys

steps = [json.loads(line) for line in open(sys.argv[1]) if '"event":"step"' in line]
data = open(sys.argv[2], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
begin = json.loads(data[8:8 + size])["gain"]["data_offsets"][0]
gradient, loss = struct.unpack_from("<f", data, 8 + size + begin)[0], steps[0]["loss"]
assert abs(gradient - 2 * loss / 0.5) < 1e-5 * abs(gradient), (gradient, loss)
assert len({round(step["loss"] / loss, 4) for step in steps}) == len(steps), "every step draws the same"
