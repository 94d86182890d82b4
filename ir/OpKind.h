// SPDX-License-Identifier: Apache-2.0
// What an op mainly is, in the words of the strategies that ask for it.
#pragma once

namespace sluice {

enum class OpKind { Conv, Pool, Activation, Norm, FullyConnected, Join, Concat, Dropout, Loss, Update, Other };

} // namespace sluice
