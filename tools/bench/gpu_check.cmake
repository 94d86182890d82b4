# SPDX-License-Identifier: Apache-2.0
# CMakeLists.txt of what tools/gpu_check.sh packs: the cuda runtime once, the conformance set, every program.
cmake_minimum_required(VERSION 3.18)
include(runtime/cuda/Toolkit.cmake)
project(sluice_gpu_check LANGUAGES CXX CUDA)
set(SLUICE_RUNTIMES cuda)
include(runtime/Standalone.cmake)

add_library(googletest STATIC googletest/src/gtest-all.cc googletest/src/gmock-all.cc googletest/src/gtest_main.cc)
target_include_directories(googletest SYSTEM PUBLIC googletest/include PRIVATE googletest)
target_link_libraries(googletest PUBLIC Threads::Threads)
file(GLOB tests ${CMAKE_SOURCE_DIR}/test/unit/*/*.cpp)
set_source_files_properties(${tests} PROPERTIES LANGUAGE CUDA)
add_executable(cuda_conformance ${tests})
target_include_directories(cuda_conformance PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(cuda_conformance PRIVATE sluice_cuda googletest)

file(GLOB programs RELATIVE ${CMAKE_SOURCE_DIR}/programs ${CMAKE_SOURCE_DIR}/programs/*)
foreach(name ${programs})
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${name})
  sluice_program(${name} programs/${name}/program.cu)
endforeach()
