// SPDX-License-Identifier: Apache-2.0
// A device that is only described, for which cuDNN says what it would run; for files that include its frontend.
#pragma once

#include <cudnn_frontend.h>
#include <memory>
#include <string>

namespace sluice {

/// `json` is as cuDNN writes it (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). Null, with a reason, where it does not
/// take it.
inline std::shared_ptr<cudnn_frontend::DeviceProperties> describedDevice(const std::string &json, std::string &reason) {
  auto described = std::make_shared<cudnn_frontend::DeviceProperties>();
  auto status = described->deserialize({json.begin(), json.end()});
  if (status.is_good())
    return described;
  reason = "cuDNN does not take the description of the device (" + status.get_message() + ")";
  return nullptr;
}

} // namespace sluice
