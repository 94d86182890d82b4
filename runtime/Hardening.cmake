# SPDX-License-Identifier: Apache-2.0
# What is built here reads files of strangers: a write beyond a buffer or an index beyond a vector shall end the program instead of being
# used. For every C++ file of the folder that includes this and of those below it. Sanitizers look closer than _FORTIFY_SOURCE does.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong> $<$<COMPILE_LANGUAGE:CXX>:-D_GLIBCXX_ASSERTIONS>)
if(NOT SLUICE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE> $<$<COMPILE_LANGUAGE:CXX>:-D_FORTIFY_SOURCE=3>)
endif()
