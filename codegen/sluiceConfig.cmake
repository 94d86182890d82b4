# SPDX-License-Identifier: Apache-2.0
# find_package(sluice): models as libraries of a CMake project.
#
#   sluice_add_model(TARGET MODEL.onnx [BUDGET SIZE] [FLAGS FLAG...] [DEPENDS FILE...])
#
# TARGET becomes a shared library that sluicec compiles of the model, with its header TARGET.h: target_link_libraries(app TARGET). BUDGET is --memory-budget, FLAGS
# are others of sluicec. It is compiled again when the model, the files of DEPENDS (external data, what flags name) or the compiler change. Its property
# SLUICE_FILES names what has to lie in one folder where the application runs: the library, and its weights and template.
get_filename_component(SLUICE_PREFIX ${CMAKE_CURRENT_LIST_DIR}/../../.. REALPATH)
set(SLUICE_COMPILER ${SLUICE_PREFIX}/bin/sluicec)
if(NOT EXISTS ${SLUICE_COMPILER})
  set(sluice_FOUND FALSE)
  set(sluice_NOT_FOUND_MESSAGE "sluicec is missing: looked for ${SLUICE_COMPILER}")
  return()
endif()

function(sluice_add_model target model)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" BUDGET "FLAGS;DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS OR ARG_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "sluice_add_model(${target}): unknown or without a value: ${ARG_UNPARSED_ARGUMENTS} ${ARG_KEYWORDS_MISSING_VALUES}")
  endif()
  get_filename_component(model ${model} ABSOLUTE)
  if(ARG_BUDGET)
    list(APPEND ARG_FLAGS --memory-budget=${ARG_BUDGET})
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}-model)
  file(MAKE_DIRECTORY ${folder}) # an include folder has to be there before it is built
  file(GLOB runtimes ${SLUICE_PREFIX}/lib/sluice/libsluice_*.a)
  set(library ${folder}/lib${target}.so)
  set(beside ${folder}/${target}.safetensors ${folder}/${target}.onnx-template)
  add_custom_command(OUTPUT ${library} ${folder}/${target}.h
    BYPRODUCTS ${folder}/lib${target}.a ${folder}/${target}.pc ${beside}
    COMMAND ${SLUICE_COMPILER} ${model} ${ARG_FLAGS} --emit=library -o ${folder}/${target}
    DEPENDS ${model} ${ARG_DEPENDS} ${SLUICE_COMPILER} ${runtimes}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} COMMENT "Compiling ${model}" VERBATIM)
  add_custom_target(${target}-model DEPENDS ${library} ${folder}/${target}.h)
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${library} IMPORTED_SONAME lib${target}.so
    INTERFACE_INCLUDE_DIRECTORIES ${folder} SLUICE_FILES "${library};${beside}")
  add_dependencies(${target} ${target}-model)
endfunction()
