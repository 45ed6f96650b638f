#include "core/fewest_nodes.h"

#include <gtest/gtest.h>

#include <random>

#include "support/hint_laws.h"
#include "support/seed.h"

namespace numalign {
namespace {

TEST(FewestNodes, AreTheFewestOfAllSubsets) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 500; i++) {
    int nodes = between(1, 10);
    std::vector<Need> needs(static_cast<size_t>(between(1, 4)));
    for (Need& need : needs) {
      int most = between(1, 100);
      for (int node = 0; node < nodes; node++) need.free.push_back(static_cast<uint64_t>(between(0, most)));
      need.request = static_cast<uint64_t>(between(1, most * nodes / 2 + 1));
    }
    NodeMask domain(test::random_mask(between, nodes));
    NodeMask must(between(0, 1) == 0 ? 0 : test::random_mask(between, nodes) & domain.bits());
    int least = 0;
    for (uint64_t mask = 1; mask <= all_nodes(nodes); mask++) {
      if ((mask & ~domain.bits()) != 0 || (must.bits() & ~mask) != 0) continue;
      bool is_met = true;
      for (const Need& need : needs) is_met = is_met && need.is_met_by(NodeMask(mask));
      if (is_met && (least == 0 || std::popcount(mask) < least)) least = std::popcount(mask);
    }
    ASSERT_EQ(fewest_nodes(needs, must, domain), (FewestNodes{least, true})) << test::where(0) << " at " << i;
  }
}

TEST(FewestNodes, AnswerALowerBoundWhenTheBudgetRanOut) {
  // Each node has one of two things, and 20 nodes of the first kind together have none of the other.
  std::vector<Need> needs{{20, {}}, {20, {}}};
  for (uint64_t node = 0; node < 64; node++) {
    needs[0].free.push_back(node % 2);
    needs[1].free.push_back(1 - node % 2);
  }
  NodeMask all(all_nodes(64));
  EXPECT_EQ(fewest_nodes(needs, NodeMask(), all), (FewestNodes{40, true}));
  FewestNodes hurried = fewest_nodes(needs, NodeMask(), all, 0);
  EXPECT_FALSE(hurried.exact);
  EXPECT_GE(hurried.count, 20);
  EXPECT_LE(hurried.count, 40);
}

}  // namespace
}  // namespace numalign
