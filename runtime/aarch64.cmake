# SPDX-License-Identifier: Apache-2.0
# Toolchain for CMake: the host runtime, programs and the compiler for 64-bit ARM, by Debian's cross compiler. Libraries come from SLUICE_ARM64_ROOT,
# where tools/arm64.sh unpacks them; tests run in an emulator.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(SLUICE_ARM64_ROOT "" CACHE PATH "libraries for 64-bit ARM, as in Debian: usr/lib/aarch64-linux-gnu, usr/include")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SLUICE_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH ${SLUICE_ARM64_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH) # headers alone are the same everywhere
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE NEVER) # of MLIR this machine's, whose generators run here
set(CMAKE_CXX_FLAGS_INIT "-isystem ${SLUICE_ARM64_ROOT}/usr/include/aarch64-linux-gnu")
set(arm64_folders ${SLUICE_ARM64_ROOT}/usr/lib/aarch64-linux-gnu:${SLUICE_ARM64_ROOT}/lib/aarch64-linux-gnu) # the second has zlib
foreach(library lapack blas) # which Debian's alternatives choose
  string(APPEND arm64_folders :${SLUICE_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/${library})
endforeach()
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${arm64_folders}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${arm64_folders})
