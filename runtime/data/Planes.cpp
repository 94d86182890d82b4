// SPDX-License-Identifier: Apache-2.0
// All changes together are one table of places, so that a value is copied once, whatever its type.

#include "runtime/data/Planes.h"

#include <cmath>
#include <cstring>
#include <numeric>

namespace sluice {

PlaneMove::PlaneMove(const ImageChanges &changes, ImageSize from)
    : before(from), to(from), source(static_cast<size_t>(from.width) * static_cast<size_t>(from.height)) {
  std::iota(source.begin(), source.end(), 0);
  for (const ImageChange &change : changes)
    add(change);
}

/// Where pixel (x, y) after the change comes from in an image of this size.
static std::pair<int, int> placeBefore(const ImageChange &change, const Turn &turn, ImageSize from, int x, int y) {
  const auto nearest = [](int at, int first, int size, int newSize) {
    return first + static_cast<int>((at + 0.5) * (static_cast<double>(size) / newSize));
  };
  switch (change.kind) {
  case ImageChange::Kind::Crop:
    return {change.box.left + x, change.box.top + y};
  case ImageChange::Kind::Resize:
    return {nearest(x, change.box.left, change.box.width, change.width),
            nearest(y, change.box.top, change.box.height, change.height)};
  case ImageChange::Kind::Flip:
    return {from.width - 1 - x, y};
  case ImageChange::Kind::Rotate: {
    const auto [right, down] = turn.from(x, y);
    return {static_cast<int>(std::floor(right)), static_cast<int>(std::floor(down))};
  }
  case ImageChange::Kind::Nothing:
  case ImageChange::Kind::Colour:
    break;
  }
  return {x, y};
}

void PlaneMove::add(const ImageChange &change) {
  if (change.kind == ImageChange::Kind::Nothing || change.kind == ImageChange::Kind::Colour)
    return;
  const ImageSize now = sizeBehind(change, to);
  const Turn turn(to.width, to.height, change.degrees);
  std::vector<int32_t> moved(static_cast<size_t>(now.width) * static_cast<size_t>(now.height));
  for (int y = 0; y < now.height; ++y)
    for (int x = 0; x < now.width; ++x) {
      const auto [left, top] = placeBefore(change, turn, to, x, y);
      const bool inside = left >= 0 && top >= 0 && left < to.width && top < to.height;
      moved[static_cast<size_t>(y) * static_cast<size_t>(now.width) + static_cast<size_t>(x)] =
          inside ? source[static_cast<size_t>(top) * static_cast<size_t>(to.width) + static_cast<size_t>(left)] : -1;
    }
  source = std::move(moved);
  to = now;
}

void PlaneMove::apply(const char *from, int64_t planes, size_t bytes, const void *fill, char *values) const {
  const size_t plane = static_cast<size_t>(before.width) * static_cast<size_t>(before.height) * bytes;
  for (int64_t i = 0; i < planes; ++i, from += plane)
    for (const int32_t place : source) {
      std::memcpy(values, place < 0 ? fill : from + static_cast<size_t>(place) * bytes, bytes);
      values += bytes;
    }
}

ImageChanges undone(const ImageChanges &changes, ImageSize from, ImageSize now) {
  std::vector<ImageSize> sizes = {from}; // before each change, and after the last
  for (const ImageChange &change : changes)
    sizes.push_back(sizeBehind(change, sizes.back()));
  using Kind = ImageChange::Kind;
  ImageChanges back;
  const auto resizeTo = [&](ImageSize to) {
    if (now != to)
      back.push_back({Kind::Resize, {0, 0, now.width, now.height}, to.width, to.height});
    now = to;
  };
  const auto putInto = [&](const Box &box, ImageSize whole) {
    if (now != whole || box.left != 0 || box.top != 0)
      back.push_back({Kind::Crop, {-box.left, -box.top, whole.width, whole.height}});
    now = whole;
  };
  for (size_t i = changes.size(); i-- > 0;) {
    const ImageChange &change = changes[i];
    if (change.kind == Kind::Resize) { // whatever size it has now
      resizeTo({change.box.width, change.box.height});
      putInto(change.box, sizes[i]);
      continue;
    }
    resizeTo(sizes[i + 1]);
    if (change.kind == Kind::Crop) {
      putInto(change.box, sizes[i]);
    } else if (change.kind == Kind::Flip || change.kind == Kind::Rotate) {
      back.push_back(change);
      back.back().degrees = -change.degrees;
    }
  }
  resizeTo(from);
  return back;
}

} // namespace sluice
