// SPDX-License-Identifier: Apache-2.0
// Chain and packing files that somebody broke: every one is an error with a text, or it is planned and packed like any
// other. Nothing throws, and no plan exceeds its memory.
#include "passes/planner/Files.h"
#include "passes/strategies/Registry.h"
#include "test/unit/MessageOf.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::planner {

static const char *const chainText =
    R"({"kind":"chain","u_f":[1,2,3,4],"u_b":[2,3,4,5],"x":[5,6,7,8,1],"y":[5,6,7,8,1],"ex_f":[0,1,0,1],)"
    R"("ex_b":[1,0,1,0],"saved":[1,0,2,0],"op":["conv","relu","bn","pool"],"bandwidth":2,"memory":30})";
static const char *const itemsText = "id,lower,upper,size,alignment\na,0,4,10,1\nb,1,6,20,4\nc,4,9,30,1\nd,2,3,5,16\n";

static const char *const oddNumbers[] = {"-1",    "1e308",  "5e-324", "1e999", "NaN",  "Infinity",
                                         "-0.0",  "null",   "\"3\"",  "[]",    "{}",   "true",
                                         "1e-9",  "1e18",   "0",      "0.1",   "1e15", "18446744073709551616",
                                         "4e300", "1.5e-9", "\"\"",   "-1e30", "1e60", "9223372036854775807"};

/// Plans what parses with several strategies; errors must say something.
static void expectChainHandled(const std::string &text) {
  SCOPED_TRACE(text);
  const Result<ChainFile> parsed = parseChain(text);
  if (!parsed) {
    EXPECT_FALSE(parsed.error().empty());
    return;
  }
  const ChainFile &file = *parsed;
  const double memory = file.memory ? *file.memory : chainPeak(file.chain) / 2;
  for (const char *name : {"mixed", "dynprog", "rotor", "pofo", "vdnnpp", "freelunch", "hascoet", "autoswap"}) {
    Options options;
    if (name[0] == 'm')
      options.knobs = {{"takeover", "0"}};
    ASSERT_NO_THROW({
      const ChainAnswer answer = runStrategy(file.chain, memory, Release::Whole, name, options);
      if (const auto *plan = std::get_if<ChainPlan>(&answer)) {
        EXPECT_LE(plan->timeline.peakBytes, memory) << name;
        EXPECT_TRUE(std::isfinite(plan->timeline.makespan)) << name;
      } else if (const auto *none = std::get_if<ChainInfeasible>(&answer)) {
        EXPECT_GT(none->smallestMemory, memory) << name;
      } else {
        EXPECT_FALSE(std::get<Refused>(answer).reason.empty()) << name;
      }
    }) << name;
  }
}

TEST(BadInput, ChainsWithOddNumbers) {
  const std::string text = chainText;
  for (size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1))
    for (const char *odd : oddNumbers) {
      size_t first = at + 1 + (text[at + 1] == '[');
      if (text[at + 1] == '[')
        first = text.find(',', first) + 1; // the second entry
      const size_t end = text.find_first_of(",]}", first);
      expectChainHandled(text.substr(0, first) + odd + text.substr(end));
    }
}

TEST(BadInput, ChainsWithBrokenText) {
  std::mt19937 random(1);
  for (int k = 0; k < 300; ++k) {
    std::string text = chainText;
    for (int edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
      case 0:
        text[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      default:
        text.insert(at, 1, "[{9-\"e,."[random() % 8]);
      }
      if (text.empty())
        break;
    }
    expectChainHandled(text);
  }
  for (const char *text : {"", "[]", "{}", "null", "{\"kind\":\"chain\"}", "\xff\xfe"})
    expectChainHandled(text);
  expectChainHandled(std::string(100'000, '['));
}

static void expectItemsHandled(const std::string &text) {
  SCOPED_TRACE(text.substr(0, 200));
  const Result<std::vector<PackItem>> items = parseItems(text);
  if (!items) {
    EXPECT_FALSE(items.error().empty());
    return;
  }
  EXPECT_EQ(messageOf(checkPacking(*items, pack(*items))), "");
}

TEST(BadInput, PackingFiles) {
  const std::string text = itemsText;
  std::vector<std::string> odd(std::begin(oddNumbers), std::end(oddNumbers));
  odd.insert(odd.end(), {"", " 7 ", "-9223372036854775808", "9223372036854775808", "a", "4611686018427387904", "3"});
  for (size_t at = text.find('\n') + 1; at < text.size(); at = text.find_first_of(",\n", at) + 1)
    for (const std::string &cell : odd)
      expectItemsHandled(text.substr(0, at) + cell + text.substr(text.find_first_of(",\n", at)));
  for (const char *broken :
       {"", "\n", "id\n", "id,lower,upper,size\n", "id,id,lower,upper,size\na,a,1,2,3\n",
        "id,lower,upper,size\na,0,4\n", "id,lower,upper,size\na,0,4,1,9\n", "id,lower,upper,size\r\na,0,4,1\r\n",
        "size,upper,lower,id\n4,2,1,a", "id,lower,upper,size,offset\na,0,5,0,16\nb,2,4,1025,0\n"})
    expectItemsHandled(broken);
}

TEST(BadInput, MoreItemsThanCanBePackedAreRefused) {
  std::string text = "id,lower,upper,size\n";
  for (int i = 0; i <= 100'000; ++i)
    text += std::to_string(i) + "," + std::to_string(i) + "," + std::to_string(i + 1) + ",1\n";
  const Result<std::vector<PackItem>> items = parseItems(text);
  ASSERT_FALSE(items);
  EXPECT_NE(items.error().find("at most 100000"), std::string::npos) << items.error();
}

} // namespace sluice::planner
