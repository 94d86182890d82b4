# SPDX-License-Identifier: Apache-2.0
# lit suite: *.mlir run sluice-opt, *.test run the tools as a user does.
# Features: `avx2`, `avx512_bf16`, `amx_bf16` where the processor has it, `nvcc` where the cuda runtime is built, `references` where the Python environment with PyTorch is installed (tools/setup.sh --references), `cuda` where there is a GPU,
# `help2man` where manual pages are made, `mypy`, `peft`, `pyarrow`, `tensorboard` and `wandb` where they are among the references.
# `mpi` where programs for several processes are built and mpirun starts them.
import glob
import os
import shutil
import sys

import lit.formats

config.name = "sluice"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["unit", "data", "models"]
for tools in (config.llvm_tools, config.sluice_tools):
    config.environment["PATH"] = os.pathsep.join((tools, config.environment["PATH"]))
config.environment["SLUICE_DEVICE"] = "host"  # plans of tests do not depend on the machine
config.environment["HOME"] = os.environ.get("HOME", "/root")
if "DNNL_MAX_CPU_ISA" in os.environ:  # the tests of lesser processors
    config.environment["DNNL_MAX_CPU_ISA"] = os.environ["DNNL_MAX_CPU_ISA"]

models = os.path.join(config.test_source_root, "models")
config.substitutions.append(("%models", models))
config.substitutions.append(("%onnx_data", os.path.join(config.onnx_root, "test-data")))
# Debian's Python has numpy; another one first in the path may not.
config.substitutions.append(("%compare", "/usr/bin/python3 " + os.path.join(models, "compare.py")))
config.substitutions.append(("%odd_data", "/usr/bin/python3 " + os.path.join(models, "odd_data.py")))
config.substitutions.append(("%python3", "/usr/bin/python3"))
config.substitutions.append(("%losses", "/usr/bin/python3 " + os.path.join(models, "losses.py")))

deps = os.environ.get("SLUICE_DEPS", os.path.expanduser("~/.cache/sluice"))
python = os.path.join(deps, "venv", "bin", "python")
if os.path.exists(os.path.join(deps, "venv", ".complete")):
    config.available_features.add("references")
    for package in ("mypy", "peft", "pyarrow", "tensorboard", "wandb"):
        if glob.glob(os.path.join(deps, f"venv/lib/python3*/site-packages/{package}")):  # environments of before have none
            config.available_features.add(package)
config.substitutions.append(("%python", python))
config.substitutions.append(("%build", config.build_root))
config.substitutions.append(("%manual", os.path.join(config.build_root, "man")))
if shutil.which("help2man"):
    config.available_features.add("help2man")
if shutil.which("nvidia-smi"):
    config.available_features.add("cuda")
with open("/proc/cpuinfo") as processor:  # programs of this level run here
    flags = processor.read().split()
    config.available_features.update({"avx2", "avx512_bf16", "amx_bf16"}.intersection(flags))
if "cuda" in config.sluice_runtimes:
    config.available_features.add("nvcc")
# Compiles a program for the cuda target against the emulator: %emulated_cxx program.cu -o program %emulated_lib
sys.path.insert(0, models)
import emulated  # noqa: E402, beside the scripts that use it, too
config.substitutions.append(("%emulated_cxx", " ".join(str(part) for part in emulated.compiler(config.build_root))))
# Of programs for several processes, which mpicxx compiles: %emulated_ranks_cxx program.cu -o program %emulated_ranks_lib
config.substitutions.append(("%emulated_ranks_cxx", " ".join(["mpicxx", *(str(part) for part in emulated.compiler(config.build_root)[1:])])))
config.substitutions.append(("%emulated_launched_lib", " ".join([*emulated.launched_libraries(config.build_root), *emulated.libraries(config.build_root)])))
config.substitutions.append(("%emulated_ranks_lib", " ".join([*emulated.ranks_libraries(config.build_root), *emulated.libraries(config.build_root)])))
config.substitutions.append(("%emulated_lib", " ".join(emulated.libraries(config.build_root))))
# Programs for several processes: built with MPI, and started by it. On one node, as root in a container, with more ranks than processors.
if shutil.which("mpirun") and os.path.exists(os.path.join(config.build_root, "lib", "libsluice_mpi.a")):
    config.available_features.add("mpi")
    config.environment.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader",
                               "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1"})
config.substitutions.append(("%mpirun", "mpirun -q --oversubscribe --bind-to none -n"))
