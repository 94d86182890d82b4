// SPDX-License-Identifier: Apache-2.0
// A confusion matrix as a picture, for TensorBoard.
#pragma once

#include "runtime/data/Image.h"
#include "runtime/program/Metrics.h"

namespace sluice {

/// A square a pair of classes, the darker the larger its share of what is right (rows) that was answered so (columns);
/// of up to 40 classes with their numbers and the shares in percent. Not empty, as the matrix.
Image confusionImage(const Confusion &counts);

/// What the picture cannot say: names of the classes.
std::string confusionCaption(const Confusion &counts, const std::vector<std::string> &names);

} // namespace sluice
