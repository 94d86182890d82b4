// SPDX-License-Identifier: Apache-2.0
// libzfp's own stream of an array, which both runtimes write.
#pragma once

#include "runtime/Codec.h"

#include <vector>
#include <zfp.h>

namespace sluice {

/// What libzfp itself makes of the grid as one array.
inline std::vector<char> zfpReference(std::vector<float> x, ZfpGrid grid, int rate) {
  std::vector<char> out(static_cast<size_t>(grid.blocks() * 2 * rate) + 64);
  zfp_field *field =
      zfp_field_2d(x.data(), zfp_type_float, static_cast<size_t>(grid.columns), static_cast<size_t>(grid.rows));
  bitstream *bits = stream_open(out.data(), out.size());
  zfp_stream *zfp = zfp_stream_open(bits);
  zfp_stream_set_rate(zfp, rate, zfp_type_float, 2, zfp_false);
  out.resize(zfp_compress(zfp, field));
  zfp_stream_close(zfp);
  stream_close(bits);
  zfp_field_free(field);
  return out;
}

} // namespace sluice
