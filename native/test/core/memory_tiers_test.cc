#include "core/memory_tiers.h"

#include <gtest/gtest.h>

namespace numalign {
namespace {

// The tier of node 1, which has no CPUs, beside node 0, which has some.
MemoryTier tier_of(MemoryFacts dram, MemoryFacts beside) {
  dram.node = 0;
  beside.node = 1;
  std::vector<NodeInfo> nodes = {{0, 1, {}, {}}, {1, 1, {}, {}}};
  assign_tiers(nodes, NodeSet{0}, std::vector<MemoryFacts>{dram, beside});
  EXPECT_EQ(nodes[0].tier, MemoryTier::kDram);
  return nodes[1].tier;
}

MemoryFacts by_subtype(std::string_view subtype) {
  MemoryFacts facts;
  facts.note_subtype(subtype);
  return facts;
}

TEST(MemoryTiers, AreNamedBySubtypes) {
  EXPECT_EQ(tier_of({}, by_subtype("HBM")), MemoryTier::kHbm);
  EXPECT_EQ(tier_of({}, by_subtype("MCDRAM")), MemoryTier::kHbm);
  EXPECT_EQ(tier_of({}, by_subtype("NVM")), MemoryTier::kPmem);
  EXPECT_EQ(tier_of({}, by_subtype("GPUMemory")), MemoryTier::kGpu);
  EXPECT_EQ(tier_of({}, by_subtype("CXL-DRAM")), MemoryTier::kCxl);
  EXPECT_EQ(tier_of({}, by_subtype("DRAM")), MemoryTier::kOther);
}

TEST(MemoryTiers, AreFasterOrSlowerThanOrdinaryMemory) {
  EXPECT_EQ(tier_of({.rank = 5}, {.rank = 4}), MemoryTier::kHbm);
  EXPECT_EQ(tier_of({.rank = 5}, {.rank = 23}), MemoryTier::kCxl);
  EXPECT_EQ(tier_of({.rank = 5}, {.rank = 5}), MemoryTier::kOther);
  EXPECT_EQ(tier_of({.bandwidth = 100}, {.bandwidth = 200}), MemoryTier::kHbm);
  EXPECT_EQ(tier_of({.bandwidth = 100}, {.bandwidth = 199}), MemoryTier::kOther);
  EXPECT_EQ(tier_of({.bandwidth = 100}, {.bandwidth = 99}), MemoryTier::kCxl);
  EXPECT_EQ(tier_of({.latency = 100}, {.latency = 151}), MemoryTier::kCxl);
  EXPECT_EQ(tier_of({.latency = 100}, {.latency = 150}), MemoryTier::kOther);
}

TEST(MemoryTiers, AreUnknownWithoutFacts) { EXPECT_EQ(tier_of({}, {}), MemoryTier::kOther); }

TEST(MemoryTiers, OfOneNameWhateverElseIsKnown) {
  MemoryFacts gpu = by_subtype("GPUMemory");
  gpu.rank = 4;
  EXPECT_EQ(tier_of({.rank = 5}, gpu), MemoryTier::kGpu);
}

TEST(MemoryTiers, TakeWhatTheNearestCpusSee) {
  MemoryFacts facts;
  for (const char* value : {"100", "50"}) facts.note("Bandwidth", value);
  for (const char* value : {"100", "250"}) facts.note("Latency", value);
  facts.note("Bandwidth", "many");
  EXPECT_EQ(facts.bandwidth, 100u);
  EXPECT_EQ(facts.latency, 100u);
}

}  // namespace
}  // namespace numalign
