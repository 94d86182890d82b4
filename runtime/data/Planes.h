// SPDX-License-Identifier: Apache-2.0
// Values that lie over the pixels of an image, such as a class or a depth of each.
#pragma once

#include "runtime/data/Augment.h"

namespace sluice {

/// Moves values as the image below them was moved; each is that of the nearest pixel, as Pillow's NEAREST takes it, and
/// colours change nothing.
class PlaneMove {
public:
  PlaneMove(const ImageChanges &changes, ImageSize from);

  ImageSize size() const { return to; }
  /// `from` holds `planes` planes of the image's size before, `values` takes as many of its size after, in row-major
  /// order; elements of `bytes` bytes. Where nothing of the image is, each becomes *fill.
  void apply(const char *from, int64_t planes, size_t bytes, const void *fill, char *values) const;

private:
  void add(const ImageChange &change);

  ImageSize before, to;
  std::vector<int32_t> source; ///< place in the plane before of each place after; -1: outside
};

/// What gives a plane of the size `now`, which lies over all of an image of the size `from` as `changes` left it, that
/// image's own size again, with everything in its place.
ImageChanges undone(const ImageChanges &changes, ImageSize from, ImageSize now);

} // namespace sluice
