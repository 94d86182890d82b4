// SPDX-License-Identifier: Apache-2.0
// The dialect's enumerators are rows of the runtime's tables: same place, same name.
#include "ir/PlanActions.h"
#include "ir/Sched.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Tables, StreamsOfTheDialectAreRowsOfTheRuntimes) {
  for (int i = 0; i < streamCount; ++i)
    EXPECT_EQ(stringifyStream(static_cast<sched::Stream>(i)), streamTable[i].name);
}

TEST(Tables, ArenasOfTheDialectAreRowsOfTheRuntimes) {
  for (int i = 0; i < arenaCount; ++i)
    EXPECT_EQ(stringifySpace(static_cast<sched::Space>(i)), arenaTable[i].name);
}

TEST(Tables, RolesOfTheDialectAreRowsOfTheRuntimes) {
  for (unsigned i = 0; i <= sched::getMaxEnumValForRole(); ++i)
    EXPECT_EQ(stringifyRole(static_cast<sched::Role>(i)), llvm::StringRef(opRoleTable[i].name).lower());
}

TEST(Tables, ActionsOfPlansAreRowsOfTheRuntimes) {
  for (const ActionFacts &facts : actionTable)
    EXPECT_EQ(stringifyActionKind(train::kindOf(facts.action)), facts.name);
}

} // namespace
} // namespace sluice
