#include "core/core_sizes.h"

#include <gtest/gtest.h>

#include <random>

#include "support/seed.h"

namespace numalign {
namespace {

CoreSizes sizes_of(const std::vector<int>& cores) {
  CoreSizes sizes;
  for (int core : cores) sizes.add(core);
  return sizes;
}

bool serves(const std::vector<int>& cores, const std::vector<CoreClaim>& claims,
            const std::vector<int>& others = {}) {
  int budget = CoreSizes::kBudget;
  return sizes_of(cores).can_serve(claims, budget, sizes_of(others));
}

TEST(CoreSizes, DealOutCoresToContainersInTurn) {
  EXPECT_TRUE(serves({7, 8}, {{15, false}}));
  EXPECT_FALSE(serves({7, 8}, {{1, false}, {6, false}, {8, false}})) << "only the sum adds up";
  EXPECT_TRUE(serves({1, 1, 8, 5}, {{1, false}, {6, false}, {8, false}}));
  EXPECT_TRUE(serves({7, 8}, {{8, true}, {8, false}, {7, false}})) << "an init container leaves its core";
  EXPECT_FALSE(serves({7, 8}, {{8, false}, {8, true}}));
  EXPECT_TRUE(serves({7}, {{7, false}, {8, false}}, {8}));
  EXPECT_FALSE(serves({7}, {{8, false}, {7, false}}, {8})) << "the first has none of the others";
}

// Tries every subset of the cores, the lowest `own` of them for the first claim alone.
bool serves_by_trying(const std::vector<int>& cores, uint32_t free, uint32_t own,
                      std::span<const CoreClaim> claims) {
  if (claims.empty()) return true;
  for (uint32_t subset = free & own;; subset = (subset - 1) & free & own) {
    int sum = 0;
    for (size_t i = 0; i < cores.size(); i++) sum += (subset >> i & 1) != 0 ? cores[i] : 0;
    const uint32_t left = claims[0].returns ? free : free & ~subset;
    if (sum == claims[0].count && serves_by_trying(cores, left, ~0u, claims.subspan(1))) return true;
    if (subset == 0) return false;
  }
}

TEST(CoreSizes, DealOutWhatTryingEverySubsetDoes) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  int yes = 0;
  for (uint32_t round = 0; round < test::rounds(20'000); round++) {
    const int largest = between(1, 8);
    std::vector<int> cores, others;
    for (int n = between(1, 7); n > 0; n--) cores.push_back(between(1, largest));
    for (int n = between(0, 2); n > 0; n--) others.push_back(between(1, largest));
    std::vector<CoreClaim> claims;
    for (int n = between(1, 4); n > 0; n--) claims.push_back({between(1, 12), between(0, 3) == 0});
    std::vector<int> all = cores;
    all.insert(all.end(), others.begin(), others.end());
    const uint32_t own = (1u << cores.size()) - 1;
    const bool expected = serves_by_trying(all, (1u << all.size()) - 1, own, claims);
    ASSERT_EQ(serves(cores, claims, others), expected) << "round " << round;
    yes += expected ? 1 : 0;
    bool are_all_nested = false;
    sizes_of(cores).nested(are_all_nested);
    // With nested sizes no way need be tried twice.
    int budget = static_cast<int>(claims.size()) * largest;
    if (are_all_nested) {
      ASSERT_EQ(sizes_of(cores).can_serve(claims, budget), serves(cores, claims));
      ASSERT_GE(budget, 0);
    }
  }
  EXPECT_GT(yes, 0);
}

TEST(CoreSizes, MakeLargeAmounts) {
  CoreSizes sizes;
  sizes.add(6, 500);
  sizes.add(4, 3);
  EXPECT_TRUE(sizes.can_make(1500));
  EXPECT_TRUE(sizes.can_make(1502));
  EXPECT_FALSE(sizes.can_make(1501));
  EXPECT_FALSE(sizes.can_make(2)) << "and what 3010 would leave";
  EXPECT_FALSE(sizes.can_make(3010));
  EXPECT_TRUE(sizes.can_make(3012));
}

TEST(CoreSizes, AreSaidToDoWhereTheBudgetEnds) {
  CoreSizes sizes;
  for (int size : {6, 10, 14, 16}) sizes.add(size, 20);
  std::vector<CoreClaim> claims(10, {80, false});
  claims.push_back({81, false});
  int budget = 1000;
  EXPECT_TRUE(sizes.can_serve(claims, budget));
  EXPECT_LT(budget, 0);
}

}  // namespace
}  // namespace numalign
