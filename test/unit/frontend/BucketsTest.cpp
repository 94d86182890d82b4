// SPDX-License-Identifier: Apache-2.0
// The words of --dim.
#include "frontend/Buckets.h"

#include <gmock/gmock.h>

using namespace sluice;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(DimBuckets, AreSeveralExtents) {
  TrainingSpec spec;
  DimBuckets buckets;
  ASSERT_TRUE(parseDims("tokens=128,256", spec, buckets));
  EXPECT_THAT(buckets.names, ElementsAre("tokens"));
  EXPECT_EQ(buckets.nameOf(1), "tokens=256");
  EXPECT_EQ(buckets.extentsOf(0), "128");
  ASSERT_TRUE(parseDims("channels=3", spec, buckets));
  EXPECT_EQ(spec.dims.at("channels"), 3);
  DimBuckets pairs;
  ASSERT_TRUE(parseDims("height,width=32x48,48x32", spec, pairs));
  EXPECT_EQ(pairs.nameOf(0), "height,width=32x48");
}

/// Of one number, and of one pair, names are as they were.
TEST(DimBuckets, OfOneShapeAreDimensions) {
  TrainingSpec spec;
  DimBuckets buckets;
  ASSERT_TRUE(parseDims("a=b,c=3", spec, buckets));
  EXPECT_EQ(spec.dims.at("a=b,c"), 3);
  ASSERT_TRUE(parseDims("height,width=32x48", spec, buckets));
  EXPECT_EQ(spec.dims.at("height"), 32);
  EXPECT_EQ(spec.dims.at("width"), 48);
  EXPECT_TRUE(buckets.names.empty());
}

TEST(DimBuckets, RefuseWhatMakesNoShapes) {
  TrainingSpec spec;
  DimBuckets buckets;
  const auto refused = [&](const char *word, const char *message) {
    const Status status = parseDims(word, spec, buckets);
    ASSERT_FALSE(status) << word;
    EXPECT_THAT(status.error(), HasSubstr(message));
  };
  refused("tokens=0", "is not NAME=N with a positive N");
  refused("tokens=4,0", "is not NAME=N with a positive N, nor NAME=N0,N1,...");
  refused("tokens=4,,8", "is not NAME=N with a positive N");
  refused("tokens=4,4", "has '4' twice");
  refused("h,w=4,8", "'4' has 1 extents for 2 dimensions");
  refused("h,h=4x8,8x4", "each dimension has a name of its own");
  ASSERT_TRUE(parseDims("tokens=4,8", spec, buckets));
  refused("other=4,8", "has several extents, as tokens=4 has: dimensions that vary are given together");
}
