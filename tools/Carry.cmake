# SPDX-License-Identifier: Apache-2.0
# Part of an installation with SLUICE_CARRY_LIBRARIES: the shared libraries that the tools and the programs which they make need, but for those that every machine with a C++ library
# has, each under the name that loaders look for, with the terms of its package where dpkg knows it. lib/sluice/linked has those that programs link (codegen/HostToolchain.cpp) and what
# they need themselves, lib/sluice/tools the other ones. `linked` is set to the former, as the build found them.
cmake_minimum_required(VERSION 3.25)
get_filename_component(prefix $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX} ABSOLUTE)
set(everywhere "^(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libstdc\\+\\+|libgcc_s)[.]so")

# The libraries that these need, by their paths.
function(needed_by kind files into)
  file(GET_RUNTIME_DEPENDENCIES ${kind} ${files} RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing PRE_EXCLUDE_REGEXES ${everywhere})
  if(missing)
    message(FATAL_ERROR "${files} need libraries that are missing: ${missing}")
  endif()
  set(${into} ${found} PARENT_SCOPE)
endfunction()

function(carry library folder)
  get_filename_component(name ${library} NAME)
  message(STATUS "Installing: ${prefix}/lib/sluice/${folder}/${name}")
  file(MAKE_DIRECTORY ${prefix}/lib/sluice/${folder})
  file(COPY_FILE ${library} ${prefix}/lib/sluice/${folder}/${name})
  file(REAL_PATH ${library} library)
  string(REGEX REPLACE "^/usr/lib" "/lib" merged ${library}) # a package may know either
  execute_process(COMMAND dpkg -S ${library} ${merged} OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE ignored)
  if(owner MATCHES "^([^:]+):")
    set(terms /usr/share/doc/${CMAKE_MATCH_1}/copyright)
    if(EXISTS ${terms})
      file(MAKE_DIRECTORY ${prefix}/share/sluice/third_party/${name})
      file(COPY_FILE ${terms} ${prefix}/share/sluice/third_party/${name}/LICENSE)
    endif()
  endif()
endfunction()

set(directly "")
foreach(library ${linked})
  file(REAL_PATH ${library} library)
  list(APPEND directly ${library})
endforeach()
needed_by(LIBRARIES "${directly}" indirectly)
needed_by(EXECUTABLES "${prefix}/bin/sluice;${prefix}/bin/sluicec;${prefix}/bin/sluice-plan" all)
foreach(library ${all})
  file(REAL_PATH ${library} real)
  if(real IN_LIST directly OR library IN_LIST indirectly)
    carry(${library} linked)
  else()
    carry(${library} tools)
  endif()
endforeach()
