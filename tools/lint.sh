#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The conventions that a script can check: format of C++, includes, heads and sizes of files, what .td files promise, the reference pages.
#
#   tools/lint.sh --check   a finding a line, `file:line: what is wrong; what to do`; exit status 1 when there is one, 77
#                           where a tool is missing that it needs
#   tools/lint.sh --fix     formats C++ and writes docs/reference anew; the rest is yours
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

# The files of the repository, new ones included, whoever owns the folder.
files() {
  local file
  git -c safe.directory='*' ls-files --cached --others --exclude-standard -- "$@" |
    while IFS= read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
}

# Runs clang-format with these flags over all C++, side by side.
format() { files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs -P "$(nproc)" -n 32 clang-format-22 "$@"; }

check_format() {
  local said
  said=$(format --dry-run --Werror 2>&1) && return
  [[ $said == *-Wclang-format-violations* ]] || { printf '%s\n' "$said" >&2; return 1; }
  sed -nE 's/^([^:]+:[0-9]+):[0-9]+: error: code should be clang-formatted.*/\1: is not formatted; run tools\/lint.sh --fix/p' <<<"$said" |
    sort -t : -k 1,1 -u
}

# The page of passes, which tablegen sorts by the alphabet, in the order of their definitions, behind the table in front
# of these.
in_pipeline_order() {
  awk '
    FILENAME !~ /\.td$/ {
      if (/^## `-/) {
        page = $2
        gsub(/^`-|`$/, "", page)
      }
      text[page] = text[page] $0 "\n"
      next
    }
    sub(/^\/\/ \|/, "|") { table = table $0 "\n" }
    /^def .* : Pass</ {
      split($0, parts, "\"")
      order[++count] = parts[2]
    }
    END {
      printf "%s%s\n", text[""], table
      for (i = 1; i <= count; ++i)
        printf "%s", text[order[i]]
    }' passes/Passes.td passes/SplitPasses.td passes/SchedulePasses.td -
}

# Writes the reference pages into a folder, with summaries as they are written and without tablegen's prefixes.
# shellcheck disable=SC2016
reference() {
  local tablegen=(mlir-tblgen-22 -I "$(llvm-config-22 --includedir)" -I .)
  mkdir -p "$1"
  "${tablegen[@]}" -gen-dialect-doc -dialect=train ir/TrainOps.td | sed '/^\[TOC\]$/,+1d; s/`Train_/`/g' >"$1/train.md"
  "${tablegen[@]}" -gen-dialect-doc -dialect=sched ir/SchedOps.td | sed '/^\[TOC\]$/,+1d' >"$1/sched.md"
  "${tablegen[@]}" -gen-pass-doc passes/Passes.td | sed '2s/.*/\n# Passes\n/; s/^##\(#*\) /#\1 /' |
    in_pipeline_order >"$1/passes.md"
  sed -i 's/^_\([A-Z]\)\([a-z ]\)/_\l\1\2/' "$1"/*.md
  tools/coverage.py "$onnx" >"$1/coverage.md"
}

check_reference() {
  local work page
  work=$(mktemp -d)
  reference "$work"
  for page in "$work"/*.md; do
    cmp -s "$page" "docs/reference/${page##*/}" ||
      echo "docs/reference/${page##*/}:1: is not what the sources say; run tools/lint.sh --fix"
  done
  rm -r "$work"
}

check() {
  local said count
  said=$(check_format; check_reference; files | tools/lint.py)
  count=$(($(wc -l <<<"$said") - 1)) # the last line is no finding
  [ "$count" -eq 0 ] || printf '%s\n' "${said%$'\n'*}"
  echo "lint: findings: $count, in ${said##*$'\n'}"
  [ "$count" -eq 0 ]
}

need() { "$@" >/dev/null 2>&1 || { echo "lint: nothing was checked: '$*' fails here"; exit 77; }; }

# The library that tools/setup.sh installs knows the versions of ops.
onnx=${SLUICE_ONNX_ROOT:-${SLUICE_DEPS:-$HOME/.cache/sluice}/onnx-$(sed -n 's/^onnx_version=//p' tools/setup.sh)}

need clang-format-22 --version
need mlir-tblgen-22 --version
need test -f "$onnx/include/onnx/defs/operator_sets.h"
need git -c safe.directory='*' rev-parse --git-dir
case ${1:-} in
  --check) check ;;
  --fix)
    format -i
    reference docs/reference
    ;;
  *) sed -n '3,6p' "$0"; exit 2 ;;
esac
