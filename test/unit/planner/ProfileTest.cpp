// SPDX-License-Identifier: Apache-2.0
// Device profiles: every shipped one loads and can plan; malformed ones are refused with key and value.
#include "passes/planner/Packings.h"

#include <gtest/gtest.h>

#include <cmath>

#include <cstdio>
#include <fstream>

namespace sluice::planner {

TEST(Profile, ShippedProfilesHaveRatesLinksAndProvenance) {
  ASSERT_EQ(shippedProfiles().size(), 15u);
  for (const auto &[name, text] : shippedProfiles()) {
    const Result<Profile> profile = loadProfile(name);
    ASSERT_TRUE(profile) << name << ": " << profile.error();
    EXPECT_GT(profile->link.d2h, 1e9) << name;
    EXPECT_GT(profile->rates.memoryBandwidth, profile->link.d2h) << name;
    EXPECT_GT(profile->rates.flops.at("fp32"), 1e11) << name;
    EXPECT_GT(profile->provenance.size(), 40u) << name;
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
  Profile base = *loadProfile("v100-pcie");
  const Result<Profile> own = parseProfile(
      R"({"version":1,"device":"x","ops":[{"node":"c1","op":"conv","seconds":0.5,"workspace_bytes":7,"zeros":[0,0.5]}],
                              "links":{"d2h":1e9,"h2d":2e9,"duplex":0}})");
  ASSERT_TRUE(own) << own.error();
  overrideWith(base, *own);
  ASSERT_NE(base.measured("c1", "conv"), nullptr);
  EXPECT_EQ(base.measured("c1", "conv")->workspace, 7);
  EXPECT_EQ(base.measured("c1", "conv")->zeros, std::vector<double>({0, 0.5}));
  EXPECT_EQ(base.measured("c1", "conv_backward"), nullptr);
  EXPECT_EQ(base.link.h2d, 2e9);
}

TEST(Profile, OtherArenasHaveLinksOfTheirOwn) {
  EXPECT_FALSE(loadProfile("v100-pcie")->linkTo(Space::Storage));
  Result<Profile> host = loadProfile("host");
  ASSERT_TRUE(host->linkTo(Space::Storage));
  EXPECT_EQ(host->linkTo(Space::Host), &host->link);
  const Result<Profile> disk = parseProfile(R"({"version":1,"links":{"storage":{"d2h":1e8,"h2d":2e8}}})");
  ASSERT_TRUE(disk) << disk.error();
  const double rate = host->link.d2h;
  overrideWith(*host, *disk);
  EXPECT_EQ(host->linkTo(Space::Storage)->h2d, 2e8);
  EXPECT_EQ(host->link.d2h, rate);
  const Result<Profile> without = loadDevice("v100-pcie", "", Space::Storage);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().find("v100-pcie: the profile has no 'links.storage'"), std::string::npos);
  EXPECT_FALSE(parseProfile(R"({"version":1,"links":{"storage":{"d2h":-1}}})"));
}

TEST(Profile, ContentionIsReplacedOnlyByOneThatWasMeasured) {
  Profile base = *loadProfile("host");
  ASSERT_GT(base.link.contention.value_or(0), 0) << "on the host copies take cores and the bus from compute";
  const double estimate = *base.link.contention;
  const Result<Profile> old = parseProfile(R"({"version":1,"links":{"d2h":1e9,"h2d":2e9,"duplex":5e8}})");
  ASSERT_TRUE(old) << old.error();
  overrideWith(base, *old);
  EXPECT_EQ(base.link.h2d, 2e9);
  EXPECT_EQ(base.link.contention, estimate);
  for (double measured : {0.0, 2.5e-10}) {
    const std::string text =
        "{\"version\":1,\"links\":{\"d2h\":1e9,\"contention\":" + std::to_string(measured * 1e10) + "e-10}}";
    const Result<Profile> own = parseProfile(text);
    ASSERT_TRUE(own) << own.error();
    overrideWith(base, *own);
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
      {R"({"version":1,"ops":[{"node":"a","op":"b","seconds":1,"zeros":0.5}]})", "'zeros' is not an array"},
      {R"({"version":1,"ops":[{"node":"a","op":"b","seconds":1,"zeros":[1.5]}]})", "'zeros' is 1.5"},
      {R"({"version":1,"links":{"d2h":"fast"}})", "'d2h'"},
      {R"({"version":1,"links":{"d2h":1e9,"contention":-1e-10}})", "'contention' is -1e-10"},
      {R"({"version":1,"links":{"d2h":1e9,"contention":2}})",
       "'contention' is 2, it must be a number of at least 0.0 and at most 1.0"},
      {R"({"version":1,"links":{"d2h":1e9,"contention":1e400}})", "malformed"},
      {R"({"version":1,"links":{"d2h":1e9,"contention":null}})", "'contention' is null"},
      {R"({"version":1,"packing_contention":-1})",
       "'packing_contention' is -1, it must be a number of at least 0.0 and at most 1.0"},
      {R"({"version":1,"codec_contention":1.5})",
       "'codec_contention' is 1.5, it must be a number of at least 0.0 and at most 1.0"},
      {R"({"version":1,"ops":[{"node":"a"}]})", "lacks"},
      {R"({"version":1,"ops":{}})", "'ops' is not an array"},
      {R"({"version":1,"ops":[{"node":"a","op":"b","seconds":1e300}]})", "'seconds' is 1e+300"},
      {R"({"version":1,"ops":[{"node":"a","op":"b","seconds":1,"workspace_bytes":1e300}]})",
       "'workspace_bytes' is 1e+300"},
      {R"({"version":1,"engines":{}})", "'engines' is not an array"},
      {R"({"version":1,"engines":[{"convolution":"a","engine":""}]})", "lacks 'convolution' or 'engine'"},
      {R"({"version":1,"engines":[{"convolution":7,"engine":"b"}]})", "lacks 'convolution' or 'engine'"},
      {R"({"version":1,"engines":[7]})", "lacks 'convolution' or 'engine'"},
      {R"({"version":1,"engines":[{"convolution":"a","engine":"b","parts":0}]})", "'parts' is 0"},
      {R"({"version":1,"links":{"d2h":1e-300}})", "'d2h' is 1e-300"},
      {R"({"version":1,"links":{"d2h":1e9,"latency_seconds":1e9}})", "'latency_seconds' is 1000000000.0"},
      {R"({"version":1,"threads":1e300})", "'threads' is 1e+300"},
      {R"({"version":1,"memory_bytes":18446744073709551616})", "'memory_bytes' is"},
      {R"({"version":1,"codecs":{"fp16":0}})", "'fp16' is 0"},
      {R"({"version":1,"rates":{"efficiency":{"conv":0}}})", "'conv' is 0"},
  };
  for (const auto &[text, expected] : cases) {
    const Result<Profile> profile = parseProfile(text);
    ASSERT_FALSE(profile) << text;
    EXPECT_NE(profile.error().find(expected), std::string::npos) << profile.error();
  }
}

TEST(Profile, EnginesOfMeasurementsReplaceTheDevices) {
  Profile device = *parseProfile(R"({"version":1,"engines":[{"convolution":"a","engine":"slow"},
                                     {"convolution":"b","engine":"own","parts":4}]})");
  overrideWith(device, *parseProfile(R"({"version":1,"engines":[{"convolution":"a","engine":"fast"}]})"));
  ASSERT_EQ(device.engines.size(), 2u);
  EXPECT_EQ(device.engines["a"].name, "fast");
  EXPECT_EQ(device.engines["a"].parts, 1);
  EXPECT_EQ(device.engines["b"].parts, 4);
}

TEST(Profile, DeepNestingIsRefusedWithoutAStack) {
  for (const std::string &text :
       {std::string(200000, '['), "{\"version\":" + std::string(200000, '[') + std::string(200000, ']') + "}"}) {
    const Result<Profile> profile = parseProfile(text);
    ASSERT_FALSE(profile);
    EXPECT_EQ(profile.error(), "malformed profile: nested more than 16 deep");
  }
}

TEST(Profile, KeysGivenTwiceAreErrors) {
  const Result<Profile> twice = parseProfile(R"({"version":1,"links":{"d2h":1e9,"h2d":2e9,"d2h":3e9}})");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error(), "malformed profile: key \"d2h\" is given twice");
  EXPECT_TRUE(parseProfile(R"({"version":1,"samples":[{"kind":"conv","size":[1],"rate":1},
                                                      {"kind":"conv","size":[2],"rate":1}]})"));
}

TEST(Profile, ADeviceHasWhatTimesAreEstimatedFrom) {
  const std::string path = testing::TempDir() + "sluice-device.json";
  const auto load = [&](const std::string &text) {
    std::ofstream(path) << text;
    const Result<Profile> profile = loadDevice(path, "");
    return profile ? "" : profile.error();
  };
  EXPECT_NE(load(R"({"version":1})").find("the profile has no 'links.d2h'"), std::string::npos);
  EXPECT_NE(load(R"({"version":1,"links":{"d2h":1e9}})").find("has no 'rates.memory_bandwidth'"), std::string::npos);
  EXPECT_NE(
      load(R"({"version":1,"links":{"d2h":1e9},"rates":{"memory_bandwidth":1e9}})").find("has no 'rates.flops.fp32'"),
      std::string::npos);
  EXPECT_EQ(load(R"({"version":1,"links":{"d2h":1e9},"rates":{"memory_bandwidth":1e9,"flops":{"fp32":1e12}}})"), "");
  const Result<Profile> endless = loadDevice("host", "/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_NE(endless.error().find("not a regular file"), std::string::npos) << endless.error();
  std::remove(path.c_str());
}

TEST(Profile, SamplesReplaceTheRoofline) {
  const Result<Profile> parsed = parseProfile(
      R"({"version":1,"rates":{"flops":{"fp32":1e12},"memory_bandwidth":1e9,"launch_seconds":0.5},"samples":[
      {"kind":"conv_forward","size":[64,64,4,8,9,1],"rate":2e11},{"kind":"conv_forward","size":[4,4,4,8,9,1],"rate":2e10},
      {"kind":"elementwise","size":[1024],"rate":1e9},{"kind":"elementwise","size":[1048576],"rate":8e9}]})");
  ASSERT_TRUE(parsed) << parsed.error();
  const Profile &profile = *parsed;
  const auto conv = [&](double channels) {
    return profile.estimate({OpKind::Conv, 2e11, 1, "fp32", "conv_forward", {channels, channels, 4, 8, 9, 1}});
  };
  EXPECT_NEAR(conv(64), 1, 0.01);
  EXPECT_NEAR(conv(4), 10, 0.1);
  EXPECT_NEAR(conv(16), std::sqrt(10.0), 0.01) << "half way between them in octaves";
  EXPECT_GT(conv(8), conv(32));
  // Bytes where arithmetic is not what takes the time, and no launch besides: it was measured with the kernel.
  EXPECT_NEAR(profile.estimate({OpKind::Activation, 1e15, 8e9, "fp32", "elementwise", {1048576}}), 1, 0.01);
  // No samples of that kind: as before.
  EXPECT_DOUBLE_EQ(profile.estimate({OpKind::Pool, 0, 1e9, "fp32", "pool", {1e9}}), 1.5);
  EXPECT_DOUBLE_EQ(profile.estimate({OpKind::Activation, 1, 4, "fp32", "elementwise", {4}}), 0.5) << "a launch";
}

TEST(Profile, SamplesOfATypeComeBeforeThoseOfFloats) {
  const Result<Profile> parsed = parseProfile(
      R"({"version":1,"rates":{"flops":{"fp32":1e12},"memory_bandwidth":1e9},"samples":[
      {"kind":"product","size":[8],"rate":1e9},{"kind":"product","type":"bf16","size":[8],"rate":4e9},
      {"kind":"norm","size":[8],"rate":1e9}]})");
  ASSERT_TRUE(parsed) << parsed.error();
  const auto seconds = [&](OpKind kind, const char *sample, const char *type) {
    return parsed->estimate({kind, 8e9, 8e9, "fp32", sample, {8}, type});
  };
  EXPECT_NEAR(seconds(OpKind::FullyConnected, "product", "fp32"), 8, 1e-6);
  EXPECT_NEAR(seconds(OpKind::FullyConnected, "product", "bf16"), 2, 1e-6);
  EXPECT_NEAR(seconds(OpKind::Norm, "norm", "bf16"), 8, 1e-6) << "nothing of bf16 was measured";
}

TEST(Profile, AKindThatIsAlikeComesWhereAnOpHasNoSamples) {
  const Result<Profile> parsed = parseProfile(
      R"({"version":1,"rates":{"flops":{"fp32":1e12},"memory_bandwidth":1e9},"samples":[
      {"kind":"elementwise","size":[8],"rate":1e9},{"kind":"elementwise","type":"bf16","size":[8],"rate":2e9},
      {"kind":"softmax","size":[8],"rate":4e9},{"kind":"odd","size":[8,8],"rate":8e9}]})");
  ASSERT_TRUE(parsed) << parsed.error();
  const auto rate = [&](const char *sample, const char *type) {
    return parsed->rateOf({OpKind::Other, 0, 8e9, "fp32", sample, {8}, type, "elementwise"});
  };
  EXPECT_NEAR(*rate("softmax", "fp32"), 4e9, 1);
  EXPECT_NEAR(*rate("softmax", "bf16"), 4e9, 1) << "its floats say more than another kind's halves";
  EXPECT_NEAR(*rate("resize", "fp32"), 1e9, 1);
  EXPECT_NEAR(*rate("resize", "bf16"), 2e9, 1);
  EXPECT_NEAR(*rate("odd", "fp32"), 1e9, 1) << "samples of two sizes are those of another version";
  EXPECT_FALSE(parsed->rateOf({OpKind::Other, 0, 8e9, "fp32", "resize", {8}}));
}

TEST(Profile, RatesOfCopiesAreMeasuredOrFollowFromTheMemory) {
  Profile profile;
  profile.codecs = {{Codec::Fp16, 3e9}, {Codec::Int8, 1e9}};
  using Rates = std::vector<std::pair<Codec, double>>;
  const Rates fp16 = {{Codec::Fp16, 3e9}};
  EXPECT_EQ(ratesOfCopies(profile, true), fp16) << "nothing is known of its memory";
  profile.rates.memoryBandwidth = 1e11;
  profile.rates.bandwidthEfficiency = 0.8;
  EXPECT_EQ(ratesOfCopies(profile, false), fp16);
  EXPECT_EQ(ratesOfCopies(profile, true), Rates({{Codec::Fp16, 3e9}, {Codec::Zvc, 4e10}}));
  profile.codecs[Codec::Zvc] = 2e9;
  for (bool zerosStay : {false, true})
    EXPECT_EQ(ratesOfCopies(profile, zerosStay), Rates({{Codec::Fp16, 3e9}, {Codec::Zvc, 2e9}}));
}

TEST(Profile, BadSamplesAreRefused) {
  for (const char *bad :
       {R"({"kind":"conv","size":[1]})", R"({"kind":"conv","size":[0],"rate":1e9})",
        R"({"kind":1,"size":[1],"rate":1e9})", R"({"kind":"conv","type":1,"size":[1],"rate":1e9})",
        R"({"kind":"conv","size":["a"],"rate":1e9})", R"({"kind":"conv","size":3,"rate":1e9})",
        R"({"kind":"conv","size":[1],"rate":0})", R"({"kind":"conv","size":[1],"rate":1e300})", R"(7)"})
    EXPECT_FALSE(parseProfile(std::string(R"({"version":1,"samples":[)") + bad + "]}")) << bad;
  const Result<Profile> uneven = parseProfile(
      R"({"version":1,"samples":[{"kind":"a","size":[1],"rate":1e9},{"kind":"a","size":[1,2],"rate":1e9}]})");
  ASSERT_FALSE(uneven);
  EXPECT_NE(uneven.error().find("another number of sizes"), std::string::npos) << uneven.error();
}

} // namespace sluice::planner
