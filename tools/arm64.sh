#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the host runtime for 64-bit ARM beside this machine's, so that `sluicec --cpu=armv8-a` and the like build programs here; on a Debian system
# of another family. The libraries that programs link are put beside it: on their own machine programs find Debian's.
#
#   tools/arm64.sh [CPU...]        armv8-a, armv8.2-a or armv8.2-a+sve (default: armv8-a)
#   tools/arm64.sh --test          builds that of armv8-a with its unit tests and runs these, then those of kernels for armv8.2-a+sve with vectors of several
#                                  lengths, and programs and a library of tiny models, in an emulator
set -euo pipefail
# shellcheck source=setup.sh
source "$(dirname "$0")/setup.sh"

root=$deps/arm64-root machine=aarch64-linux-gnu
libraries=(libdnnl-dev libdnnl2 libzfp-dev libzfp1 libjpeg62-turbo-dev libjpeg62-turbo libpng-dev libpng16-16 zlib1g-dev zlib1g libgomp1)

# Debian's libraries for ARM, unpacked into a folder: installing them would take the place of this machine's headers.
fetch_libraries() {
  [ -f "$root/.complete" ] && return
  say "fetching ${#libraries[@]} libraries for 64-bit ARM into $root"
  rm -rf "$root"
  mkdir -p "$root/apt/lists/partial" "$root/apt/cache/archives/partial" "$root/packages"
  local apt=(apt-get -q -o "Dir::State::lists=$root/apt/lists" -o "Dir::Cache=$root/apt/cache" -o Dir::State::status=/dev/null
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=)
  "${apt[@]}" update >/dev/null
  (cd "$root/packages" && "${apt[@]}" download "${libraries[@]}" >/dev/null)
  local package
  for package in "$root"/packages/*.deb; do dpkg -x "$package" "$root"; done
  rm -rf "$root/apt" "$root/packages"
  touch "$root/.complete"
}

# build_runtime CPU TARGET...: in a folder of its own.
build_runtime() {
  local cpu=$1 folder=build-arm64/$1
  shift
  say "building the host runtime for $cpu"
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$PWD/runtime/aarch64.cmake" -DSLUICE_ARM64_ROOT="$root" \
    -DSLUICE_RUNTIME_ONLY=ON -DSLUICE_CUDA=OFF -DSLUICE_CPU="$cpu" >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
  ninja -C "$folder" "$@" 2>&1 | tee "$folder.log" | sed -un '/^\[[0-9]/p' | show_progress "building for $cpu" ||
    { grep -v '^\[' "$folder.log" | tail -n 50; exit 1; }
  mkdir -p "build/lib/$machine"
  cp "$folder/lib/libsluice_host.a" "build/lib/$machine/libsluice_host-$cpu.a"
  cp -a "$root/usr/lib/$machine"/lib{dnnl,zfp,jpeg,png,png16,gomp}.so* "$root/lib/$machine"/libz.so* "build/lib/$machine/"
  local name
  for name in libgomp.so.1 libz.so.1; do ln -sf "$name" "build/lib/$machine/${name%.1}"; done
}

# What programs lose to this machine's own in five steps: nothing beyond rounding.
train_tiny_models() { # CPU MODEL...
  local cpu=$1 model work=$PWD/build-arm64/programs
  shift
  mkdir -p "$work"
  for model in "$@"; do
    local flags=("test/models/tiny/$model/model.onnx" --batch=8 --threads=2 --force --memory-budget=90%act --host-budget=unlimited)
    rm -f "$work"/*.jsonl
    build/bin/sluicec "${flags[@]}" "--cpu=$cpu" -o "$work/$model-arm"
    build/bin/sluicec "${flags[@]}" -o "$work/$model"
    "$work/$model" --data "test/models/tiny/$model/data" --steps 5 --lr 0.1 --log "$work/here.jsonl" >/dev/null
    "${emulator[@]}" "$work/$model-arm" --data "test/models/tiny/$model/data" --steps 5 --lr 0.1 --log "$work/arm.jsonl" >/dev/null
    say "$model for $cpu: $(test/models/losses.py "$work/arm.jsonl" "$work/here.jsonl" --within 1e-4)"
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
fetch_libraries
mkdir -p build-arm64
emulator=(qemu-aarch64 -L "/usr/$machine" -E "LD_LIBRARY_PATH=$PWD/build/lib/$machine")
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
[ $# -gt 0 ] || set -- armv8-a
for cpu in "$@"; do build_runtime "$cpu" libsluice_host.a; done
