# Builds the training program with CMake, nvcc, cuDNN, libjpeg-turbo, libpng and zlib. CUDNN_PATH in the environment says where cuDNN is, if it is not
# beside CUDA; -DSLUICE_CUDA_ARCHITECTURES=75;80;90 for what it is compiled (default: the GPUs of this machine).
cmake_minimum_required(VERSION 3.18)
include(runtime/cuda/Toolkit.cmake)
project(@name@ LANGUAGES CXX CUDA)
set(SLUICE_RUNTIMES cuda)
set(SLUICE_COMPILER @version@) # of sluicec
set(SLUICE_RANKS @ranks@) # for several processes, which needs MPI and NCCL
include(runtime/Standalone.cmake)
sluice_program(@name@ program.cu)
