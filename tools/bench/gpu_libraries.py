#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where this machine has cuDNN, cuBLASLt and NVRTC: prints CUDNN_PATH:FOLDER:FOLDER..., the folders for the start of LD_LIBRARY_PATH.

    gpu_libraries.py [PROGRAM]      of the CUDA version that PROGRAM was linked with, else of that of nvcc, if there is one

Looks into CUDNN_PATH, LD_LIBRARY_PATH, CUDA_PATH (default /usr/local/cuda), the system's folders, and the Python packages of CUDA 12
(nvidia/cudnn, nvidia/cublas, nvidia/cuda_nvrtc) and 13 (nvidia/cudnn, nvidia/cu13). The newest of each wins, as each says of itself."""
import ctypes
import glob
import os
import pathlib
import re
import site
import subprocess
import sys

LIBRARIES = {"cudnn": r"libcudnn\.so\.9", "cublasLt": r"libcublasLt\.so\.(\d+)", "nvrtc": r"libnvrtc\.so\.(\d+)"}


def folders():
    root = os.environ.get("CUDNN_PATH")
    cuda = os.environ.get("CUDA_PATH", "/usr/local/cuda")
    listed = [f"{root}/lib", f"{root}/lib64"] if root else []
    listed += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    listed += [f"{cuda}/lib64", f"{cuda}/lib", f"{cuda}/targets/x86_64-linux/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib"]
    for packages in [*sys.path, *site.getsitepackages(), site.getusersitepackages()]:
        listed += sorted(glob.glob(f"{packages}/nvidia/*/lib"))
    return list(dict.fromkeys(str(pathlib.Path(folder).resolve()) for folder in listed if folder and os.path.isdir(folder)))


def version(kind, path):
    """What the library says of itself; raises OSError where it cannot be loaded."""
    library = ctypes.CDLL(path)
    if kind == "nvrtc":
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return major.value * 1000 + minor.value * 10
    function = library.cudnnGetVersion if kind == "cudnn" else library.cublasLtGetVersion
    function.restype = ctypes.c_size_t
    return function()


def asked(kind, path):
    """The same from a process of its own: one library must not stay loaded when the next is asked."""
    folder = os.path.dirname(path)
    said = subprocess.run([sys.executable, __file__, "--version", kind, path], capture_output=True, text=True,
                          env=os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))})
    return int(said.stdout) if said.returncode == 0 and said.stdout.strip().isdigit() else None


def cuda_major(program):
    """As text; empty where nothing tells."""
    if program and (linked := re.search(rb"libcublasLt\.so\.(\d+)", pathlib.Path(program).read_bytes())):
        return linked.group(1).decode()
    try:
        said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout
    except OSError:
        return ""
    release = re.search(r"release (\d+)\.", said)
    return release.group(1) if release else ""


def main():
    if sys.argv[1:2] == ["--version"]:
        print(version(*sys.argv[2:4]))
        return
    major = cuda_major(sys.argv[1] if sys.argv[1:] and os.path.isfile(sys.argv[1]) else None)
    newest = {}
    for folder in folders():
        for kind, pattern in LIBRARIES.items():
            for name in sorted(os.listdir(folder)):
                found = re.fullmatch(pattern, name)
                if not found or major and found.groups() and found.group(1) != major:
                    continue
                found = asked(kind, f"{folder}/{name}")
                if found and found > newest.get(kind, (0, ""))[0]:
                    newest[kind] = found, folder
    for kind in LIBRARIES:
        if kind not in newest:
            sys.exit(f"CUDA library lib{kind} not found: neither in CUDNN_PATH, LD_LIBRARY_PATH or CUDA_PATH, nor in the system's folders, "
                     "nor in the Python packages nvidia-cudnn, nvidia-cublas and nvidia-cuda-nvrtc; set CUDNN_PATH or CUDA_PATH")
        print(f"{kind} {newest[kind][0]} in {newest[kind][1]}", file=sys.stderr)
    cudnn = newest["cudnn"][1]
    print(":".join([os.path.dirname(cudnn), *dict.fromkeys(newest[kind][1] for kind in LIBRARIES)]))


main()
