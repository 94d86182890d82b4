// SPDX-License-Identifier: Apache-2.0
// The networks of the papers, as training problems.
#pragma once

#include "tools/bench/reproduce/NetworkBuilder.h"

namespace sluice::bench {

/// Names: alexnet alexnet_lrn vgg16 vgg19 vgg19_bn vgg116 vgg191 stacked resnet32 resnet18 resnet34 resnet50 resnet101
/// resnet152 resnet152_v1 densenet121 densenet161 densenet169 densenet201 inception_v3 mobilenet_v2 unet unet_bn.
/// Throws std::invalid_argument for others. `image` is the edge of the square input.
planner::Problem network(const std::string &name, const planner::Profile &profile, int batch, int image,
                         NetworkOptions options = {});

/// Bytes of the outputs of a network's layers.
LayerBytes layerBytes(const std::string &name, int batch, int image);

/// vDNN++'s pinned host memory: fp32 bytes of the inputs of all convolutions and pools, shared ones once, and of the
/// first fully connected layer.
Bytes pinnedBytes(const std::string &name, const planner::Profile &profile, int batch, int image);

} // namespace sluice::bench
