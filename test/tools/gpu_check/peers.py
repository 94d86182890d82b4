# SPDX-License-Identifier: Apache-2.0
# What gpu_peers.py prints, without PyTorch.
import json
import sys

print(json.dumps({"model": sys.argv[1], "batch": int(sys.argv[2]), "variant": sys.argv[3], "samples_per_second": 1.0, "driver_bytes": 2}))
