# Builds the training program with CMake, a C++17 compiler, oneDNN, libjpeg-turbo, libpng and zlib.
cmake_minimum_required(VERSION 3.16)
project(@name@ CXX)
set(SLUICE_RUNTIMES host)
set(SLUICE_CPU @cpu@ CACHE STRING "what it is built for: native, x86-64-v2, -v3, -v4, armv8-a, armv8.2-a or armv8.2-a+sve; it was planned for @cpu@")
set(SLUICE_COMPILER @version@) # of sluicec
set(SLUICE_RANKS @ranks@) # for several processes, which needs MPI
include(runtime/Standalone.cmake)
sluice_program(@name@ program.cpp)
