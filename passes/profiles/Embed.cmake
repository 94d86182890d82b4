# SPDX-License-Identifier: Apache-2.0
# Writes the shipped profiles into one C++ file, so that a tool finds them wherever it is installed.
# Called with -DOUT=file -DFILES=a.json;b.json
set(text "// Generated from passes/profiles; do not edit.\n#include \"passes/planner/Profile.h\"\n\nnamespace sluice::planner {\n\n")
string(APPEND text "const std::vector<std::pair<std::string, std::string>> &shippedProfiles() {\n")
string(APPEND text "  static const std::vector<std::pair<std::string, std::string>> all = {\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} json)
  string(APPEND text "      {\"${name}\", R\"profile(${json})profile\"},\n")
endforeach()
string(APPEND text "  };\n  return all;\n}\n\n} // namespace sluice::planner\n")
file(WRITE ${OUT} "${text}")
