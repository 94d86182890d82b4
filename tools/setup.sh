#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Sluice needs on Debian 12 and configures one build folder. Cheap when nothing is missing.
#
#   tools/setup.sh                 packages, ONNX library, configure and build into build/
#   tools/setup.sh --deps          packages and libraries only
#   tools/setup.sh --references    also the Python environment with PyTorch (5 GB) that reference tests and benchmarks use
#
# SLUICE_DEPS names the folder for what is not a Debian package (default: ~/.cache/sluice).
set -euo pipefail
cd "$(dirname "$0")/.."

deps=${SLUICE_DEPS:-$HOME/.cache/sluice}
onnx_version=1.19.1
onnx_sha256=737524d6eb3907d3499ea459c6f01c5a96278bb3a0f2ff8ae04786fb5d7f1ed5
onnx_prefix=$deps/onnx-$onnx_version
frontend_version=1.32.0
frontend_sha256=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0
frontend_prefix=$deps/cudnn-frontend-$frontend_version

say() { printf 'setup: %s\n' "$*"; }

# Reads ninja's lines and says how much there is to do, how far it is and about how long it still takes: on a terminal in one line that
# moves, elsewhere in a line every tenth of the way. What is not progress passes through.
show_progress() {
  local what=$1 start=$SECONDS tenth=-1 line step total left
  while IFS= read -r line; do
    [[ ! $line =~ ^\[0/ ]] || continue # ninja looks for what to do
    if [[ ! $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
      printf '%s\n' "$line"
      continue
    fi
    step=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    if [ "$tenth" -lt 0 ]; then
      say "$what: $total steps, about $(expected_time "$total") on $(nproc) cores, less where ccache knows them"
      tenth=0
    fi
    left=$(((SECONDS - start) * (total - step) / step))
    if [ -t 1 ]; then
      printf '\r%-79s' "setup: $what: $((step * 100 / total)) % ($step of $total), about $left s left"
      [ "$step" -lt "$total" ] || printf '\n'
    elif [ $((step * 10 / total)) -gt "$tenth" ]; then
      tenth=$((step * 10 / total))
      say "$what: $((step * 100 / total)) % ($step of $total), about $left s left"
    fi
  done
}

# About how long this many steps of ninja take with nothing in a cache: two to four seconds of one core each.
expected_time() {
  local seconds=$(($1 * 3 / $(nproc) + 1))
  if [ "$seconds" -lt 90 ]; then echo "$seconds seconds"; else echo "$(((seconds + 30) / 60)) minutes"; fi
}

install_packages() {
  install_missing build-essential cmake ninja-build git ca-certificates ccache python3 python3-venv python3-numpy help2man \
    libmlir-22-dev llvm-22-dev llvm-22-tools mlir-22-tools libdnnl-dev libzfp-dev libjpeg62-turbo-dev libpng-dev zlib1g-dev libprotobuf-dev protobuf-compiler \
    nlohmann-json3-dev libtomlplusplus-dev coinor-libcbc-dev libcli11-dev libre2-dev libgtest-dev libgmock-dev libbenchmark-dev libopenmpi-dev openmpi-bin
}

# Installs those of these Debian packages that are missing.
install_missing() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing Debian packages: ${missing[*]}"
  local sudo=""
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  $sudo apt-get update -q
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# The ONNX C++ library from its source distribution; Debian's own stops at opset 17.
install_onnx() { # [PREFIX [FLAG OF CMAKE...]]
  local prefix=${1:-$onnx_prefix} work
  shift $(($# > 0))
  [ -f "$prefix/.complete" ] && return
  say "fetching and building the ONNX library $onnx_version into $prefix (once)"
  work=$(mktemp -d)
  python3 -m venv "$work/venv"
  (cd "$work" && venv/bin/pip download -q --no-deps --no-binary=onnx "onnx==$onnx_version")
  echo "$onnx_sha256  $work/onnx-$onnx_version.tar.gz" | sha256sum --check --quiet
  tar -C "$work" -xf "$work/onnx-$onnx_version.tar.gz"
  rm -rf "$prefix"
  # It reads models and is done: optimizing it more only costs time, and half of the rest are its headers.
  cmake -S "$work/onnx-$onnx_version" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
    -DCMAKE_PROJECT_INCLUDE="$PWD/tools/onnx.cmake" -DCMAKE_INSTALL_PREFIX="$prefix" -DONNX_BUILD_PYTHON=OFF -DONNX_USE_PROTOBUF_SHARED_LIBS=ON -DONNX_ML=ON -DCMAKE_POSITION_INDEPENDENT_CODE=ON "$@" >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
  # Its compiler warnings are not ours to show.
  cmake --build "$work/build" --target install 2>&1 | tee "$work/log" | sed -un '/^\[[0-9]/p' | show_progress "building the ONNX library" ||
    { tail -n 50 "$work/log"; exit 1; }
  # The distribution's backend tests and light models are test data of ours.
  cp -r "$work/onnx-$onnx_version/onnx/backend/test/data" "$prefix/test-data"
  touch "$prefix/.complete"
  rm -rf "$work"
}

# cuDNN's frontend, headers only, for the cuda runtime; nothing to do without nvcc. The headers of every wheel are the same.
install_cudnn_frontend() {
  [ -f "$frontend_prefix/.complete" ] && return
  command -v nvcc >/dev/null || [ -x "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" ] || return 0
  say "installing the headers of cuDNN's frontend $frontend_version into $frontend_prefix"
  local work
  work=$(mktemp -d)
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" download -q --no-deps --only-binary=:all: --python-version 3.11 --platform manylinux_2_28_x86_64 \
    -d "$work" "nvidia-cudnn-frontend==$frontend_version"
  echo "$frontend_sha256  $(echo "$work"/*.whl)" | sha256sum --check --quiet
  rm -rf "$frontend_prefix"
  python3 -m zipfile -e "$work"/*.whl "$work/wheel"
  mkdir -p "$frontend_prefix"
  cp -r "$work/wheel/include" "$frontend_prefix/include"
  cp "$work/wheel/nvidia_cudnn_frontend-$frontend_version.dist-info/licenses/LICENSE.txt" "$frontend_prefix/LICENSE"
  touch "$frontend_prefix/.complete"
  rm -rf "$work"
}

# PyTorch and friends, for reference files and benchmarks; the core test suite runs without it.
# What is there already stays; a longer list adds to it.
install_references() {
  local packages=(torch torchvision timm transformers peft jinja2 onnx onnxscript onnxruntime scikit-learn safetensors matplotlib tensorboard wandb pyarrow mypy)
  [ "$(cat "$deps/venv/.complete" 2>/dev/null)" = "${packages[*]}" ] && return
  say "installing PyTorch and the Python references into $deps/venv (5 GB)"
  [ -f "$deps/venv/.complete" ] || rm -rf "$deps/venv"
  [ -d "$deps/venv" ] || python3 -m venv "$deps/venv"
  "$deps/venv/bin/pip" install -q "${packages[@]}"
  echo "${packages[*]}" >"$deps/venv/.complete"
}

# build [PRESET [TARGET...]]: configures, then builds all targets of the preset or the named ones.
build() {
  local preset=${1:-release}
  shift $(($# > 0))
  say "configuring (preset $preset)"
  cmake --preset "$preset" -DSLUICE_ONNX_ROOT="$onnx_prefix" -DSLUICE_CUDNN_FRONTEND_ROOT="$frontend_prefix" >/dev/null
  cmake --build --preset "$preset" ${1:+--target "$@"} | show_progress "building ${*:-everything}"
}

main() {
  install_packages
  install_onnx
  install_cudnn_frontend
  case "${1:-}" in
    --deps) ;;
    --references) install_references ;;
    "") build ;;
    *) say "unknown option $1"; exit 2 ;;
  esac
}

# test.sh and demo.sh source this file for its functions.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then main "$@"; fi
