# SPDX-License-Identifier: Apache-2.0
# Writes the viewer of reports into a C++ file, so that programs carry it. Called with -DOUT=file -DHTML=Viewer.html
file(READ ${HTML} html)
file(WRITE ${OUT} "// Generated from runtime/program/Viewer.html; do not edit.
namespace sluice {
extern const char reportViewer[];
const char reportViewer[] = R\"viewer(${html})viewer\";
} // namespace sluice
")
