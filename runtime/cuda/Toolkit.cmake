# SPDX-License-Identifier: Apache-2.0
# Before project(): finds nvcc, and decides what device code is compiled for where SLUICE_CUDA_ARCHITECTURES does not say:
# the GPUs of this machine, or all that programs are meant to run on where it has none.
find_program(SLUICE_NVCC nvcc HINTS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
if(SLUICE_NVCC AND NOT DEFINED ENV{CUDACXX})
  set(ENV{CUDACXX} ${SLUICE_NVCC})
endif()
if(NOT SLUICE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE capabilities OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    string(REPLACE "." "" capabilities "${capabilities}")
    string(REPLACE "\n" ";" SLUICE_CUDA_ARCHITECTURES "${capabilities}")
    list(REMOVE_DUPLICATES SLUICE_CUDA_ARCHITECTURES)
  else()
    set(SLUICE_CUDA_ARCHITECTURES 75 80 86 89 90 100 120)
  endif()
  # Older compilers do not know the newest, newer ones no longer the oldest.
  execute_process(COMMAND ${SLUICE_NVCC} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    foreach(architecture ${SLUICE_CUDA_ARCHITECTURES})
      if(NOT known MATCHES "compute_${architecture}\n")
        list(REMOVE_ITEM SLUICE_CUDA_ARCHITECTURES ${architecture})
      endif()
    endforeach()
  endif()
endif()
set(CMAKE_CUDA_ARCHITECTURES ${SLUICE_CUDA_ARCHITECTURES})
