// SPDX-License-Identifier: Apache-2.0
// Device profiles: every shipped one loads and can plan; malformed ones are refused with key and value.
#include "passes/planner/Profile.h"

#include <gtest/gtest.h>

namespace sluice::planner {

TEST(Profile, ShippedProfilesHaveRatesLinksAndProvenance) {
  ASSERT_EQ(shippedProfiles().size(), 6u);
  for (const auto &[name, text] : shippedProfiles()) {
    Profile profile;
    std::string error;
    ASSERT_TRUE(loadProfile(name, profile, error)) << name << ": " << error;
    EXPECT_GT(profile.link.d2h, 1e9) << name;
    EXPECT_GT(profile.rates.memoryBandwidth, profile.link.d2h) << name;
    EXPECT_GT(profile.rates.flops.at("fp32"), 1e11) << name;
    EXPECT_GT(profile.provenance.size(), 40u) << name;
  }
}

TEST(Profile, EstimateIsARoofline) {
  Profile profile;
  profile.rates.flops["fp32"] = 1e12;
  profile.rates.convEfficiency = 0.5;
  profile.rates.memoryBandwidth = 1e9;
  profile.rates.launch = 1e-6;
  // 1e12 operations at half of 1e12 a second: 2 s; 1e9 bytes: 1 s.
  EXPECT_DOUBLE_EQ(profile.estimate(OpKind::Conv, 1e12, 1e9), 2 + 1e-6);
  EXPECT_DOUBLE_EQ(profile.estimate(OpKind::Conv, 1e11, 1e9), 1 + 1e-6);
}

TEST(Profile, MeasurementsReplaceEstimates) {
  Profile base, own;
  std::string error;
  ASSERT_TRUE(loadProfile("v100-pcie", base, error));
  ASSERT_TRUE(
      parseProfile(R"({"version":1,"device":"x","ops":[{"node":"c1","op":"conv","seconds":0.5,"workspace_bytes":7}],
                              "links":{"d2h":1e9,"h2d":2e9,"duplex":0}})",
                   own, error))
      << error;
  overrideWith(base, own);
  ASSERT_NE(base.measured("c1", "conv"), nullptr);
  EXPECT_EQ(base.measured("c1", "conv")->workspace, 7);
  EXPECT_EQ(base.measured("c1", "conv_backward"), nullptr);
  EXPECT_EQ(base.link.h2d, 2e9);
}

TEST(Profile, ContentionIsReplacedOnlyByOneThatWasMeasured) {
  Profile base, old, own;
  std::string error;
  ASSERT_TRUE(loadProfile("host", base, error)) << error;
  ASSERT_GT(base.link.contention.value_or(0), 0) << "on the host copies take cores and the bus from compute";
  const double estimate = *base.link.contention;
  ASSERT_TRUE(parseProfile(R"({"version":1,"links":{"d2h":1e9,"h2d":2e9,"duplex":5e8}})", old, error)) << error;
  overrideWith(base, old);
  EXPECT_EQ(base.link.h2d, 2e9);
  EXPECT_EQ(base.link.contention, estimate);
  for (double measured : {0.0, 2.5e-10}) {
    const std::string text = "{\"version\":1,\"links\":{\"d2h\":1e9,\"contention\":" + std::to_string(measured * 1e10) + "e-10}}";
    ASSERT_TRUE(parseProfile(text, own, error)) << error;
    overrideWith(base, own);
    ASSERT_TRUE(base.link.contention);
    EXPECT_DOUBLE_EQ(*base.link.contention, measured);
  }
}

TEST(Profile, MalformedOnesAreRefused) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "malformed"},
      {"[]", "version"},
      {R"({"version":2})", "version is 2"},
      {R"({"version":1,"links":{"d2h":-3}})", "'d2h' is -3"},
      {R"({"version":1,"links":{"d2h":"fast"}})", "'d2h'"},
      {R"({"version":1,"links":{"d2h":1e9,"contention":-1e-10}})", "'contention' is -1e-10"},
      {R"({"version":1,"links":{"d2h":1e9,"contention":2}})", "'contention' is 2, it must be a number of at least 0.0 and at most 1.0"},
      {R"({"version":1,"links":{"d2h":1e9,"contention":1e400}})", "malformed"},
      {R"({"version":1,"links":{"d2h":1e9,"contention":null}})", "'contention' is null"},
      {R"({"version":1,"ops":[{"node":"a"}]})", "lacks"},
      {R"({"version":1,"ops":{}})", "'ops' is not an array"},
  };
  for (const auto &[text, expected] : cases) {
    Profile profile;
    std::string error;
    EXPECT_FALSE(parseProfile(text, profile, error)) << text;
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  }
}

} // namespace sluice::planner
