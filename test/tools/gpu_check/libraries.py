# SPDX-License-Identifier: Apache-2.0
print("/nowhere:/nowhere/lib")  # what gpu_libraries.py prints
