#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a wheel into an empty environment and trains there, with nothing in the environment and, where mounts can be made, without the repository, LLVM, oneDNN,
# and the libraries that the wheel carries. pip fetches numpy. The last lines say what it took.
#
#   test/tools/wheel.sh WHEEL [PYTHON]   PYTHON has PyTorch; without it no module is trained. The source distribution is looked for beside the wheel
set -euo pipefail
say() { printf 'wheel: %s\n' "$*"; }

# Puts nothing in the place of a folder or a file.
hide() {
  local place
  for place in "$@"; do
    if [ -d "$place" ]; then
      mount -t tmpfs none "$place"
    elif [ -e "$place" ]; then
      mount --bind /dev/null "$(realpath "$place")"
    fi
  done
}

# What Python and compilers need themselves stays: zlib and bzip2.
hide_what_could_help() {
  local library name
  mount --make-rprivate /
  hide "$repository" /usr/lib/llvm-* /usr/include/{oneapi,nlohmann,toml++,google,coin,onnx} /usr/include/{zfp,png,jpeglib}.h "$HOME"/.cache/sluice/{onnx,cudnn}*
  while IFS= read -r library; do
    name=${library##*/}
    [[ $name == libz.so* || $name == libbz2.so* ]] || hide /usr/lib/x86_64-linux-gnu/"$name"
  done < <(python3 -m zipfile -l "$wheel" | grep -o 'sluice/lib/sluice/[a-z]*/lib[^ ]*[.]so[^ ]*'; printf 'lib%s.so.22.1\n' MLIR LLVM)
  say "hidden: the repository, LLVM, MLIR, and the libraries that the wheel carries"
}

# Every library of a program is the wheel's, or one that comes with the C++ library.
check_libraries() {
  local program needed found
  for program in "$@"; do
    needed=$("${clean[@]}" ldd "$program")
    found=$(grep -v -E "linux-vdso|ld-linux-x86-64|^\s*lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)[.]so" <<<"$needed" | grep -v -F "=> $package/" || true)
    [ -z "$found" ] || { say "$program needs more than the wheel has: $found"; exit 1; }
  done
}

if [ "$1" != --inside ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$(dirname "$0")/../.."
  cp "$1" "${1%/*}"/sluice-*.tar.gz "$work"
  cp -r test/tools/wheel.sh test/tools/wheel.py test/models/tiny/mlp/model.onnx test/models/tiny/mlp/data "$work"
  isolated=()
  unshare -m true 2>/dev/null && isolated=(unshare -m)
  # No exec: the folder is removed at the end.
  "${isolated[@]}" bash "$work/wheel.sh" --inside "$PWD" "$work" "${#isolated[@]}" "${2:-}"
  exit
fi

repository=$2 work=$3 mounts=$4 references=$5
wheel=$(echo "$work"/*.whl)
cd "$work"
if [ "$mounts" -gt 0 ]; then
  hide_what_could_help
else
  say "this user cannot make mounts: nothing is hidden; what programs load is looked at all the same"
fi
mkdir home
clean=(env -i "PATH=$work/venv/bin:/usr/bin:/bin" "HOME=$work/home")
python3 -m venv venv

started=$(date +%s%N)
venv/bin/pip install -q "$wheel"
installed=$(date +%s%N)
"${clean[@]}" python -m sluice train model.onnx --batch=8 -o mlp --data data --epochs 1 --lr 0.1
trained=$(date +%s%N)
clean+=(SLUICE_DEVICE=host) # from here on plans do not depend on what else this machine does

package=$(echo "$work"/venv/lib/python3*/site-packages/sluice)
check_libraries "$package"/bin/* ./mlp
level=3
grep -q avx512vl /proc/cpuinfo && level=4
! SLUICE_FAULT=processor ./mlp --plan 2>said || exit 1
grep -q "built for x86-64-v$level" said || { say "the program is not for this processor: $(cat said)"; exit 1; }
for tool in sluice sluicec sluice-plan; do "${clean[@]}" "$tool" --version; done
"${clean[@]}" python wheel.py onnx "$work"
check_libraries home/.cache/sluice/libraries/*/libmodel.so
"${clean[@]}" sluice new project
(cd project && sed -n 's/^    //p' README.md >../commands && "${clean[@]}" sh -e ../commands | tail -n 1)
test -s project/trained.onnx
if [ -n "$references" ]; then
  mkdir only && ln -s "$package" only/sluice
  "${clean[@]}" "PYTHONPATH=$work/only" "$references" wheel.py torch "$work"
else
  say "no module was trained: that needs a Python with PyTorch (tools/setup.sh --references)"
fi
# The package alone, with the compiler of the other one.
python3 -m venv alone
alone/bin/pip install -q "$work"/sluice-*.tar.gz
"${clean[@]}" "SLUICEC=$package/bin/sluicec" alone/bin/python wheel.py onnx "$work"
# Without a compiler in the PATH.
nothing=(env -i "PATH=$work/venv/bin" "HOME=$work/home")
! "${nothing[@]}" sluicec model.onnx --batch=8 -o none 2>said || exit 1
grep 'install one (Debian, Ubuntu: g++; Fedora: gcc-c++)' said
"${nothing[@]}" venv/bin/python wheel.py nothing "$work"
say "$(stat -c %s "$wheel") bytes, $(du -sb "$package" | cut -f1) installed; seconds: $(((installed - started) / 1000000000)) until installed, $(((trained - started) / 1000000000)) until the first model was trained"
