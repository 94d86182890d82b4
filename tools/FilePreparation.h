// SPDX-License-Identifier: Apache-2.0
// How the images of a model's weights were prepared, as its file says.
#pragma once

#include "frontend/OnnxFile.h"

#include <string>

namespace sluice {

/// What a model that a program exported says of its weights; empty where it says nothing. What cannot be read is told
/// as a note.
std::string preparationOf(const OnnxFile &file);

} // namespace sluice
