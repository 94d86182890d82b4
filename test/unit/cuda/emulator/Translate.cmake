# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=kernel.cu -DOUTPUT=kernel.cpp -P Translate.cmake: writes CUDA's launches as calls that a C++ compiler knows.
# A launch is a statement of its own: kernel<<<grid, block, shared, stream>>>(arguments);
file(READ ${INPUT} text)
string(REGEX REPLACE "([A-Za-z_]+)<<<([^;]*[^>])>>>\\(([^;]*)\\);" "emulator::start(\\2, [=] { \\1(\\3); });" text "${text}")
file(WRITE ${OUTPUT} "#line 1 \"${INPUT}\"\n${text}")
