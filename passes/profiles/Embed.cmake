# SPDX-License-Identifier: Apache-2.0
# Writes the shipped profiles into one C++ file, so that a tool finds them wherever it is installed.
# Called with -DOUT=file -DFILES=a.json;b.json -DINTERCONNECTS=c.json;d.json
set(text "// Generated from passes/profiles; do not edit.\n#include \"passes/planner/Profile.h\"\n\nnamespace sluice::planner {\n")

# A function of that name, which returns the files by their names.
function(embed name)
  string(APPEND text "\nconst std::vector<std::pair<std::string, std::string>> &${name}() {\n")
  string(APPEND text "  static const std::vector<std::pair<std::string, std::string>> all = {\n")
  foreach(file ${ARGN})
    get_filename_component(stem ${file} NAME_WE)
    file(READ ${file} json)
    string(APPEND text "      {\"${stem}\", R\"profile(${json})profile\"},\n")
  endforeach()
  string(APPEND text "  };\n  return all;\n}\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()

embed(shippedProfiles ${FILES})
embed(shippedInterconnects ${INTERCONNECTS})
string(APPEND text "\n} // namespace sluice::planner\n")
file(WRITE ${OUT} "${text}")
