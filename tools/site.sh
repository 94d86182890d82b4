#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a site of the pages: README, guide, references and results as they are in the repository, in the order of tools/site.yml. A link or an anchor that leads
# nowhere, or a page that is in no menu, fails.
#
#   tools/site.sh   writes build/site; begin with build/site/index.html
set -euo pipefail
# shellcheck source=setup.sh
source "$(dirname "$0")/setup.sh"

version=9.8.2 # of mkdocs-material
venv=$deps/venv-site-$version
if [ ! -f "$venv/.complete" ]; then
  say "installing mkdocs-material into $venv (once)"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q "mkdocs-material==$version"
  touch "$venv/.complete"
fi
pages=build/pages
rm -rf "$pages"
python3 tools/python/pages.py "$pages"
# Not --quiet, which would let warnings pass.
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --config-file tools/site.yml 2>&1 | { grep -v '^INFO ' || true; }
say "build/site: $(find build/site -name '*.html' | wc -l) pages, $(du -sh build/site | cut -f1)"
