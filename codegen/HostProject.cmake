# Builds the training program with CMake, a C++17 compiler and oneDNN.
cmake_minimum_required(VERSION 3.16)
project(@name@ CXX)
set(SLUICE_RUNTIMES host)
include(runtime/Standalone.cmake)
sluice_program(@name@ program.cpp)
