# SPDX-License-Identifier: Apache-2.0
"""Compiles models for the cuda target into programs that run on the emulator of test/unit/cuda, for machines without a GPU.

    test/models/emulated.py install BUILD FOLDER   an installation of sluicec whose cuda runtime is the emulator's: CUDACXX=FOLDER/bin/nvcc FOLDER/bin/sluicec"""
import os
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
FLAGS = ["--target=cuda", "--workspace-limit=64KiB"]  # of sluicec for such programs; the emulator's convolutions need little


def compiler(build):
    """Compiles a program for the cuda target; libraries(build) come last."""
    emulator = TOP / "test/unit/cuda/emulator"
    return ["c++", "-x", "c++", "-std=c++17", "-O1", "-ffp-contract=off", "-D__CUDACC__", "-include", emulator / "cuda_runtime.h",
            f"-I{build}/test/unit/cuda/translated", f"-I{emulator}", f"-I{TOP}"]


def libraries(build):
    return ["-x", "none", f"{build}/lib/libsluice_cuda_emulated.a", "-ljpeg", "-lpng", "-lz", "-lpthread"]


def launched_libraries(build):
    """The same of programs without MPI, which a launcher like torchrun starts."""
    return ["-x", "none", f"{build}/lib/libsluice_launched_emulated.a"]


def ranks_libraries(build):
    """Of programs for several processes, before libraries(build); compiled by mpicxx, which knows those of MPI."""
    return ["-x", "none", f"{build}/lib/libsluice_nccl_emulated.a", f"{build}/lib/libsluice_mpi.a"]


def compile_program(sluicec, model, flags, binary):
    """As `sluicec model flags -o binary`, with the weights beside it; (exit status, what was printed). sluicec is that of a build folder."""
    build = pathlib.Path(sluicec).resolve().parent.parent
    project = pathlib.Path(binary).parent / "projects" / pathlib.Path(binary).name  # whose name the program has, and its weights
    project.parent.mkdir(exist_ok=True)
    shutil.rmtree(project, ignore_errors=True)
    done = run([sluicec, model, *flags, "--emit=project", "-o", project])
    try:
        if done.returncode == 0:
            (source,) = project.glob("*.cu")
            done = run([*compiler(build), source, "-o", binary, *libraries(build)])
        if done.returncode == 0:
            (project / f"{project.name}.safetensors").rename(f"{binary}.safetensors")
    finally:
        shutil.rmtree(project, ignore_errors=True)
    return done.returncode, done.stdout + done.stderr


def install(build, folder):
    """What sluicec looks for beside itself, and an nvcc that calls the C++ compiler."""
    build, folder = pathlib.Path(build).resolve(), pathlib.Path(folder)
    for name in ("bin", "lib/sluice", "include", "share"):
        (folder / name).mkdir(parents=True)
    shutil.copy(build / "bin/sluicec", folder / "bin/sluicec")
    (folder / "lib/sluice/libsluice_cuda.a").symlink_to(build / "lib/libsluice_cuda_emulated.a")
    for name in ("include/sluice", "share/sluice"):
        (folder / name).symlink_to(TOP)
    nvcc = folder / "bin/nvcc"
    nvcc.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{pathlib.Path(__file__).resolve()}" nvcc "{build}" "$@"\n')
    nvcc.chmod(0o755)


def nvcc(build, words):
    """Leaves out what only nvcc knows. Files of other kinds than source follow the source."""
    taken = []
    for word in words:
        if word.startswith("-Xcompiler="):
            taken += word.partition("=")[2].split(",")
        elif word.endswith(".cu"):
            taken += [word, "-x", "none"]
        elif not word.startswith(("-gencode=", "-fmad=", "--expt-", "-O")):
            taken.append(word)
    command = [str(word) for word in (*compiler(build), *taken)]
    os.execvp(command[0], command)


def run(command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


if __name__ == "__main__":
    {"install": install, "nvcc": lambda build, *words: nvcc(build, words)}[sys.argv[1]](*sys.argv[2:])
