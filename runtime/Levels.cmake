# SPDX-License-Identifier: Apache-2.0
# What the host runtime and programs for it are compiled for: a level of x86-64 or of 64-bit ARM (runtime/CpuTable.h) rather than all that one
# processor has, so that a program can name what it needs. Leaves SLUICE_HOST_LEVEL, SLUICE_HOST_FLAGS and SLUICE_PROGRAM_FLAGS; the level is
# empty, and the flags are for this very processor, where native is none of them: on ARM, on other architectures, and with compilers that know no levels.
set(SLUICE_CPU native CACHE STRING "what the host runtime is compiled for: x86-64-v2, -v3, -v4, armv8-a, armv8.2-a, armv8.2-a+sve, or native, this processor and those of its level")
# In the order of runtime/CpuTable.h, whose first has this level.
set(SLUICE_CPUS x86-64-v2 x86-64-v3 x86-64-v4 armv8-a armv8.2-a armv8.2-a+sve)
set(SLUICE_FIRST_LEVEL 2)

# Macros that tell which instructions -march=CPU allows.
function(sluice_instructions cpu into)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=${cpu} -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
  string(REGEX MATCHALL "__[A-Z0-9_]+__ 1\n" macros "${macros}")
  set(${into} ${macros} PARENT_SCOPE)
endfunction()

# The highest level that -march=native includes.
function(sluice_native_level into)
  sluice_instructions(native native)
  set(found "")
  foreach(level x86-64-v2 x86-64-v3 x86-64-v4)
    sluice_instructions(${level} needed)
    list(LENGTH needed known)
    list(REMOVE_ITEM needed ${native})
    if(known AND NOT needed)
      set(found ${level})
    endif()
  endforeach()
  set(${into} ${found} PARENT_SCOPE)
endfunction()

function(sluice_host_flags level into)
  if(NOT level)
    set(level native)
  endif()
  set(${into} ${SLUICE_KERNEL_FLAGS} -march=${level} PARENT_SCOPE)
endfunction()

set(SLUICE_HOST_LEVEL ${SLUICE_CPU})
if(SLUICE_CPU STREQUAL native)
  sluice_native_level(SLUICE_HOST_LEVEL)
elseif(NOT SLUICE_CPU IN_LIST SLUICE_CPUS)
  list(JOIN SLUICE_CPUS ", " known)
  message(FATAL_ERROR "SLUICE_CPU is '${SLUICE_CPU}'; there are native, ${known}")
endif()
sluice_host_flags("${SLUICE_HOST_LEVEL}" SLUICE_HOST_FLAGS)
set(SLUICE_ON_ARM OFF)
set(SLUICE_LEAST_CPU x86-64)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(SLUICE_ON_ARM ON)
  set(SLUICE_LEAST_CPU armv8-a)
endif()
# Its notes on how other versions pass arguments: all that is linked here is of one compiler.
if(SLUICE_ON_ARM AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-Wno-psabi)
endif()
# GCC before 12.3 miscompiles constants like {1, 1, 0, 0, 0, 0, 0, 0} with 512-bit vectors; kernels that wait for memory lose nothing.
set(SLUICE_PROGRAM_FLAGS ${SLUICE_HOST_FLAGS})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND SLUICE_PROGRAM_FLAGS -mprefer-vector-width=256)
endif()
