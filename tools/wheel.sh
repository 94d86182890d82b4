#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python wheel: the package of python/ with the compiler and its tools, the runtimes and headers of programs, and the shared libraries that a machine
# with a C++ compiler may lack. It is for the C library of this machine and later ones, and for processors with AVX2; programs are for the processor that makes them.
#
#   tools/wheel.sh [FOLDER]   leaves sluice-VERSION-py3-none-manylinux_X_Y_x86_64.whl in FOLDER (default: dist), and beside it the source distribution
#                             sluice-VERSION.tar.gz of the package alone, for who has a sluicec
set -euo pipefail
# shellcheck source=setup.sh
source "$(dirname "$0")/setup.sh"

# The package with an installation in it.
stage() {
  rm -rf "$stage"
  mkdir -p "$stage/sluice"
  cp python/sluice/{*.py,py.typed} "$stage/sluice"
  cp LICENSE "$stage"
  # The other tools have no name in the PATH where the package is installed without them.
  sed -e '/^sluice = "sluice.__main__/a sluicec = "sluice.__main__:compiler"\nsluice-plan = "sluice.__main__:planner"' \
    -e 's/"py.typed"/"**\/*"/' python/pyproject.toml >"$stage/pyproject.toml"
  cat >>"$stage/pyproject.toml" <<END

[tool.distutils.bdist_wheel]
plat-name = "manylinux_$(getconf GNU_LIBC_VERSION | sed 's/glibc //; s/[.]/_/')_$(uname -m)"
END
  cmake --install build-wheel --prefix "$stage/sluice" --strip >build-wheel/install.log
}

# The package without the compiler, of which pip makes a wheel on any machine.
pack_source() {
  local source=$PWD/build-wheel/source
  rm -rf "$source"
  mkdir -p "$source"
  cp -r python/pyproject.toml python/sluice LICENSE "$source"
  rm -rf "$source/sluice/__pycache__"
  (cd "$source" && ../venv/bin/python -c 'import setuptools.build_meta as build, sys; build.build_sdist(sys.argv[1])' "$1" >../source.log)
}

install_packages
install_onnx
build wheel
stage=build-wheel/package
say "packing the wheel"
stage
python3 -m venv build-wheel/venv
folder=${1:-dist}
mkdir -p "$folder"
rm -f "$folder"/sluice-*.whl "$folder"/sluice-*.tar.gz
pack_source "$(realpath "$folder")"
build-wheel/venv/bin/pip wheel -q --no-deps -w "$folder" "$stage"
wheel=$(echo "$folder"/sluice-*.whl)
say "$wheel: $(stat -c %s "$wheel") bytes, $(du -sb "$stage/sluice" | cut -f1) installed"
