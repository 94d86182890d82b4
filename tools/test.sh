#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs all tests. Ends with ctest's count.
#
#   tools/test.sh             all tests of the ordinary build
#   tools/test.sh asan|tsan   the unit tests under a sanitizer
set -euo pipefail
# shellcheck source=setup.sh
source "$(dirname "$0")/setup.sh"

preset=${1:-release}
folder=build
[ "$preset" = release ] || folder=build-$preset
install_packages
install_onnx
build "$preset"
say "running the tests"
selection=()
[ "$preset" = release ] || selection=(--exclude-regex '^lit$')
ctest --test-dir "$folder" --output-on-failure "${selection[@]}"
