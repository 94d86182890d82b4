// SPDX-License-Identifier: Apache-2.0
// Changes of protobuf messages by reflection: they know nothing of ONNX.
#pragma once

#include "test/fuzz/Target.h"

#include "google/protobuf/message.h"
#include "onnx/onnx_pb.h"

namespace sluice::fuzz {

/// Changes one field of `root` or of any message in it; parts of `other` may get into it.
void mutateAnyField(google::protobuf::Message &root, const google::protobuf::Message &other, Random &random);

} // namespace sluice::fuzz
