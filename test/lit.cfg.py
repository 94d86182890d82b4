# SPDX-License-Identifier: Apache-2.0
# lit suite: *.mlir run sluice-opt, *.test run the tools as a user does.
# Features: `references` where the Python environment with PyTorch is installed (tools/setup.sh --references), `cuda` where there is a GPU.
import os
import shutil

import lit.formats

config.name = "sluice"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["unit", "data", "models"]
for tools in (config.llvm_tools, config.sluice_tools):
    config.environment["PATH"] = os.pathsep.join((tools, config.environment["PATH"]))
config.environment["HOME"] = os.environ.get("HOME", "/root")

models = os.path.join(config.test_source_root, "models")
config.substitutions.append(("%models", models))
config.substitutions.append(("%onnx_data", os.path.join(config.onnx_root, "test-data")))
# Debian's Python has numpy; another one first in the path may not.
config.substitutions.append(("%compare", "/usr/bin/python3 " + os.path.join(models, "compare.py")))

deps = os.environ.get("SLUICE_DEPS", os.path.expanduser("~/.cache/sluice"))
python = os.path.join(deps, "venv", "bin", "python")
if os.path.exists(os.path.join(deps, "venv", ".complete")):
    config.available_features.add("references")
config.substitutions.append(("%python", python))
if shutil.which("nvidia-smi"):
    config.available_features.add("cuda")
