// SPDX-License-Identifier: Apache-2.0
// The GTX 1080 Ti of S. Shriram, A. Garg, P. Kulkarni, Dynamic Memory Management for GPU-Based Training of Deep Neural
// Networks, IPDPS 2019: link and kernels calibrated from that paper's own tables, and networks as the rows of layers
// that it plans.
#pragma once

#include "passes/planner/Chain.h"
#include "passes/planner/Profile.h"

#include <array>
#include <string>

namespace sluice::bench {

/// Table I: milliseconds of a layer whose input is 112x112x64 at batch 128, and of the copy of that input. They agree
/// with Tables III and IV where they are read as forward with backward, and as out with back.
struct LayerTime {
  int kernel;
  double milliseconds;
};
inline constexpr std::array<LayerTime, 3> tableOne = {{{1, 19}, {3, 80}, {5, 200}}};
inline constexpr double tableOnePool = 3, tableOneCopies = 62;

/// Table IV: milliseconds of an iteration of VGG-116 (32).
inline constexpr double aconvOfVgg116 = 2717, convOfVgg116 = 3055;

/// Bytes of Table I's input, and operations of one direction of its convolution with as many filters as channels.
double tableOneInput();
double tableOneFlops(int kernel);

/// The shipped profile with the link of Table I and the kernels of least workspace, (m): convolutions at the rates of
/// Table I, by their filter's size.
planner::Profile smallestKernelProfile();

/// The same link with the fastest kernels, (p): one rate for all 3x3 convolutions, from Table IV.
planner::Profile fastestKernelProfile();

/// Seconds that VGG-116 (32) computes with the fastest kernels: half of the convolutions' copies cost half of the wait.
constexpr planner::Seconds computeOfVgg116() { return (2 * aconvOfVgg116 - convOfVgg116) / 1000; }

/// A network in a row of layers, x_i the input of layer i: activations in place, pools without indices.
planner::Chain layerChain(const std::string &name, const planner::Profile &profile, int batch, int image);

} // namespace sluice::bench
