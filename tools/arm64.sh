#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the host runtime for 64-bit ARM beside this machine's, so that `sluicec --cpu=armv8-a` and the like build programs here; on a Debian system
# of another family. The libraries that programs link are put beside it: on their own machine programs find Debian's.
#
#   tools/arm64.sh [CPU...]        armv8-a, armv8.2-a or armv8.2-a+sve (default: armv8-a)
#   tools/arm64.sh --compiler      builds the compiler and its tools for such a machine into build-arm64/sluice, and compares what they write in an emulator
#                                  with what this machine's write
#   tools/arm64.sh --test          builds that of armv8-a with its unit tests and runs these, then those of kernels for armv8.2-a+sve with vectors of several
#                                  lengths, and programs and a library of tiny models, in an emulator
set -euo pipefail
# shellcheck source=setup.sh
source "$(dirname "$0")/setup.sh"

root=$deps/arm64-root machine=aarch64-linux-gnu
libraries=(libdnnl-dev libdnnl2 libzfp-dev libzfp1 libjpeg62-turbo-dev libjpeg62-turbo libpng-dev libpng16-16 zlib1g-dev zlib1g libgomp1)
# What the compiler links besides, and what that needs.
compiler_libraries=(libmlir-22-dev llvm-22-dev libprotobuf-dev libprotobuf32 libre2-dev libre2-9 coinor-libcbc-dev coinor-libcbc3 coinor-libcgl1 coinor-libclp1
  coinor-libcoinutils3v5 coinor-libosi1v5 liblapack3 libblas3 libgfortran5 libbz2-1.0)

# fetch_libraries PACKAGE...: Debian's for ARM, unpacked into a folder: installing them would take the place of this machine's headers.
fetch_libraries() {
  local apt package link missing=() work=$root/work
  for package in "$@"; do [ -f "$root/packages/$package" ] || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "fetching ${#missing[@]} libraries for 64-bit ARM into $root"
  rm -rf "$work"
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/packages" "$root/packages"
  apt=(apt-get -q -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o Dir::State::status=/dev/null
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=)
  "${apt[@]}" update >/dev/null
  (cd "$work/packages" && "${apt[@]}" download "${missing[@]}" >/dev/null)
  for package in "$work"/packages/*.deb; do dpkg -x "$package" "$root"; done
  # Links from the root of a file system lead out of the folder, to this machine's libraries or to nothing.
  find "$root" -type l -lname '/*' ! -lname "$root/*" | while IFS= read -r link; do ln -sf "$root$(readlink "$link")" "$link"; done
  (cd "$root/packages" && touch "${missing[@]}")
  rm -rf "$work"
}

# cross_build NAME "TARGET..." FLAG...: in a folder of its own.
cross_build() {
  local folder=build-arm64/$1 targets
  read -ra targets <<<"$2"
  shift 2
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$PWD/runtime/aarch64.cmake" -DSLUICE_ARM64_ROOT="$root" \
    -DSLUICE_CUDA=OFF "$@" >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
  ninja -C "$folder" "${targets[@]}" 2>&1 | tee "$folder.log" | sed -un '/^\[[0-9]/p' | show_progress "building in $folder" ||
    { grep -v '^\[' "$folder.log" | tail -n 50; exit 1; }
}

# build_runtime CPU TARGET...
build_runtime() {
  local cpu=$1
  shift
  say "building the host runtime for $cpu"
  cross_build "$cpu" "$*" -DSLUICE_RUNTIME_ONLY=ON -DSLUICE_CPU="$cpu"
  mkdir -p "build/lib/$machine"
  cp "build-arm64/$cpu/lib/libsluice_host.a" "build/lib/$machine/libsluice_host-$cpu.a"
  cp -a "$root/usr/lib/$machine"/lib{dnnl,zfp,jpeg,png,png16,gomp}.so* "$root/lib/$machine"/libz.so* "build/lib/$machine/"
  local name
  for name in libgomp.so.1 libz.so.1; do ln -sf "$name" "build/lib/$machine/${name%.1}"; done
}

# The compiler and its tools for armv8-a, by the generators of this machine's MLIR.
build_compiler() {
  local onnx=$onnx_prefix-arm64
  fetch_libraries "${libraries[@]}" "${compiler_libraries[@]}"
  install_onnx "$onnx" -DCMAKE_TOOLCHAIN_FILE="$PWD/runtime/aarch64.cmake" -DSLUICE_ARM64_ROOT="$root"
  say "building the compiler for armv8-a"
  cross_build compiler "sluicec sluice sluice-plan sluice-opt sluice_host sluice_host-armv8.2-a sluice_host-armv8.2-a+sve" -DSLUICE_CPU=armv8-a \
    -DSLUICE_TESTS=OFF -DSLUICE_ONNX_ROOT="$onnx" -DSLUICE_LLVM_ROOT="$root/usr/lib/llvm-22"
  cmake --install build-arm64/compiler --prefix build-arm64/sluice >build-arm64/compiler.log
}

# Both compilers with the same flags, each in a folder of its own, where it leaves what it writes and says.
write_both() { # NAME FLAG...
  local name=$1
  shift
  (cd "$written/here" && "$PWD/../../../build/bin/sluicec" "$@" >"$name.said" 2>&1 || echo "status $?" >>"$name.said")
  (cd "$written/there" && "${compiler[@]}" "$@" >"$name.said" 2>&1 || echo "status $?" >>"$name.said")
}

# What the compiler writes in an emulator is what this machine's writes: sources and plans, projects with initial weights, refusals.
compare_compilers() {
  local models=$PWD/test/models/tiny model name flags count
  say "$("${compiler[@]}" --version), in an emulator"
  rm -rf "$written"
  mkdir -p "$written/here" "$written/there"
  for model in "$models"/*/model.onnx; do
    name=$(basename "$(dirname "$model")")
    flags=("$model" --batch=8 --cpu=armv8-a --threads=4 --device=raspberry-pi-5 --host-budget=unlimited)
    write_both "$name" "${flags[@]}" --emit=source -o "$name.cpp"
    case $name in
      resnet | mobile | bert | lstm | gpt | vgg | vit | wave | reversible)
        write_both "$name-planned" "${flags[@]}" --memory-budget=90%act --emit=source -o "$name-planned.cpp"
        write_both "$name-halves" "${flags[@]}" --precision=bf16 --emit=source -o "$name-halves.cpp"
        write_both "$name-project" "${flags[@]}" --emit=project -o "$name-project"
        ;;
    esac
  done
  count=$(find "$written/here" -maxdepth 1 -name '*.said' | wc -l)
  diff -rq "$written/here" "$written/there" || { say "the compiler for ARM writes other files than this machine's"; exit 1; }
  say "$count times the compiler wrote and said in an emulator what this machine's does"
}

# What a program of the compiler in an emulator loses. It calls a cross compiler, which has to be told where libraries are.
link_there() { # MODEL
  local model=$1 flags=("${tiny_flags[@]}" --device=raspberry-pi-5 "test/models/tiny/$1/model.onnx") said
  cat >"$written/c++" <<END
#!/bin/sh
unset LD_LIBRARY_PATH
exec $machine-g++ "-L$root/usr/lib/$machine" "-L$root/lib/$machine" "-Wl,-rpath-link,$folders" "\$@"
END
  chmod +x "$written/c++"
  CXX=$written/c++ PATH=/usr/$machine/bin:$PATH "${compiler[@]}" "${flags[@]}" -o "$written/$model-arm"
  build/bin/sluicec "${flags[@]}" -o "$written/$model"
  said=$(compare_losses "$written/$model" "$model")
  say "$model by the compiler in an emulator: $said"
}

# Of PROGRAM and PROGRAM-arm, in five steps: nothing beyond rounding.
compare_losses() { # PROGRAM MODEL
  local flags=(--data "test/models/tiny/$2/data" --steps 5 --lr 0.1 --log)
  rm -f "$1.jsonl" "$1-arm.jsonl"
  "$1" "${flags[@]}" "$1.jsonl" >/dev/null
  "${emulator[@]}" "$1-arm" "${flags[@]}" "$1-arm.jsonl" >/dev/null
  test/models/losses.py "$1-arm.jsonl" "$1.jsonl" --within 1e-4
}

# What programs lose to this machine's own.
train_tiny_models() { # CPU MODEL...
  local cpu=$1 model flags said work=$PWD/build-arm64/programs
  shift
  mkdir -p "$work"
  for model in "$@"; do
    flags=("${tiny_flags[@]}" "test/models/tiny/$model/model.onnx")
    build/bin/sluicec "${flags[@]}" "--cpu=$cpu" -o "$work/$model-arm"
    build/bin/sluicec "${flags[@]}" -o "$work/$model"
    said=$(compare_losses "$work/$model" "$model")
    say "$model for $cpu: $said"
  done
}

# The library of a model, in a C program.
call_library() {
  local work=$PWD/build-arm64/programs said
  build/bin/sluicec test/models/tiny/mlp/model.onnx --batch=8 --force --cpu=armv8-a --emit=library -o "$work/mlp"
  "$machine-gcc" -std=c99 "-I$work" examples/hello/hello.c "-L$work" -lmlp "-Wl,-rpath-link,$PWD/build/lib/$machine" -o "$work/hello"
  said=$(qemu-aarch64 -L "/usr/$machine" -E "LD_LIBRARY_PATH=$work:$PWD/build/lib/$machine" "$work/hello")
  say "a library: $said"
}

# Vectors of 128, 256 and 512 bits: code for SVE takes those that it finds.
test_vectors() {
  local bits said tests=$PWD/build-arm64/armv8.2-a+sve/bin/runtime_kernel_tests
  build_runtime armv8.2-a+sve runtime_kernel_tests
  for bits in 128 256 512; do
    said=$("${emulator[@]}" -cpu "max,sve$bits=on" "$tests" --gtest_brief=1 | tail -n 1)
    say "tests of kernels with vectors of $bits bits: $said"
  done
}

install_packages
install_missing "g++-$machine" googletest qemu-user
fetch_libraries "${libraries[@]}"
mkdir -p build-arm64
folders=$root/usr/lib/$machine:$root/lib/$machine:$root/usr/lib/$machine/lapack:$root/usr/lib/$machine/blas
emulator=(qemu-aarch64 -L "/usr/$machine" -E "LD_LIBRARY_PATH=$folders")
compiler=("${emulator[@]}" "$PWD/build-arm64/sluice/bin/sluicec") written=$PWD/build-arm64/written
tiny_flags=(--batch=8 --threads=2 --force --memory-budget=90%act --host-budget=unlimited)
if [ "${1:-}" = --test ]; then
  build_runtime armv8-a all
  # Measuring takes an emulator many minutes, and says nothing of a machine.
  measuring='^(Peaks[.]Fall|Files[.]WhatOthersWrote|TinyProgram[.](PrintsItsRoofline|RecordsNoEvaluation|WritesAProfile|WritesWhatItsDiskReaches))'
  say "running the runtime's tests in an emulator, but for those that measure it: $measuring"
  (cd build-arm64/armv8-a && ctest --output-on-failure -j "$(nproc)" --exclude-regex "$measuring")
  train_tiny_models armv8-a resnet vgg mobile densenet unet bert lstm gru vit
  call_library
  test_vectors
  train_tiny_models armv8.2-a+sve resnet mobile bert lstm
  exit
fi
if [ "${1:-}" = --compiler ]; then
  build_compiler
  build release sluicec
  compare_compilers
  link_there resnet
  exit
fi
[ $# -gt 0 ] || set -- armv8-a
for cpu in "$@"; do build_runtime "$cpu" libsluice_host.a; done
