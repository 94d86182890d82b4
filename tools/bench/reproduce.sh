#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes all pages of docs/reproduction and their pictures anew.
#
#   tools/bench/reproduce.sh [FOLDER]     FOLDER: docs/reproduction; needs build/bin/planner-reproduce, build/bin/sluicec and matplotlib
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
folder=${1:-docs/reproduction}
build/bin/planner-reproduce "$folder"
"${PYTHON:-python3}" tools/bench/reproduction_models.py "$folder"
"${PYTHON:-python3}" tools/bench/reproduction_figures.py "$folder"
