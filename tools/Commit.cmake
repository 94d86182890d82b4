# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a source that names the commit of the folder SOURCE; a file that says it already stays as it is, so that nothing is built again.
cmake_minimum_required(VERSION 3.25)
set(commit unknown)
find_program(GIT git)
if(GIT)
  # Not that of a repository around the folder, which holds something else.
  get_filename_component(around ${SOURCE} DIRECTORY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_CEILING_DIRECTORIES=${around} ${GIT} -c safe.directory=* -C ${SOURCE} rev-parse --short HEAD
    RESULT_VARIABLE failed OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed AND head MATCHES "^[0-9a-f]+$")
    set(commit ${head})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "// Written by tools/Commit.cmake.\n#include \"tools/Version.h\"\n\nconst char sluice::builtFrom[] = \"@commit@\";\n" @ONLY)
