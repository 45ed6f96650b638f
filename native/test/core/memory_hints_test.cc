#include "core/memory_hints.h"

#include <gtest/gtest.h>

#include "support/hint_laws.h"

namespace numalign {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// Empty nodes of 8 GiB, a request for this many GiB.
MemoryHintsRequest machine(int nodes, uint64_t gib) {
  MemoryHintsRequest request;
  request.nodes = nodes;
  SmallWords all(static_cast<size_t>(nodes), 8 * kGiB);
  request.types.push_back({gib * kGiB, all, all});
  request.group.resize(static_cast<size_t>(nodes));
  return request;
}

void share(MemoryHintsRequest& request, uint64_t group) {
  for_each_node(group, [&](int node) { request.group[node] = NodeMask(group); });
}

using test::Masks;
using test::offered;

TEST(MemoryHints, OfferEveryMaskOfUnusedNodesWithEnoughAndPreferTheFewestThatCouldEverDo) {
  MemoryHintsRequest request = machine(2, 6);
  EXPECT_EQ(offered(memory_hints(request)), (Masks{0b01, 0b10, 0b11}));
  request.types[0].free = {4 * kGiB, 4 * kGiB};
  HintFamily family = memory_hints(request);
  EXPECT_EQ(offered(family), (Masks{0b11}));
  EXPECT_FALSE(family.prefers(NodeMask(0b11))) << "one node could do on the empty machine";
  EXPECT_TRUE(memory_hints(machine(2, 9)).prefers(NodeMask(0b11)));
}

TEST(MemoryHints, KeepGroupsApart) {
  MemoryHintsRequest request = machine(4, 2);
  share(request, 0b0011);
  EXPECT_EQ(offered(memory_hints(request)), (Masks{0b0011, 0b0100, 0b1000, 0b1100}));
  share(request, 0b0100);
  EXPECT_EQ(offered(memory_hints(request)), (Masks{0b0011, 0b0100, 0b1000}))
      << "a node in use by itself is shared with no other";
}

TEST(MemoryHints, UseWhatInitContainersLeaveBehindForExactlyTheirNodes) {
  MemoryHintsRequest request = machine(3, 6);
  share(request, 0b001);
  share(request, 0b110);
  request.types[0].free = {2 * kGiB, 2 * kGiB, 2 * kGiB};
  EXPECT_EQ(offered(memory_hints(request)), Masks{});
  request.reusable.push_back({NodeMask(0b001), {4 * kGiB}});
  EXPECT_EQ(offered(memory_hints(request)), (Masks{0b001}));
}

TEST(MemoryHints, AreOfAllTypesTogether) {
  MemoryHintsRequest request = machine(3, 6);
  // Hugepages on node 2 only.
  request.types.push_back({kGiB, {0, 0, kGiB}, {0, 0, kGiB}});
  HintFamily family = memory_hints(request);
  EXPECT_EQ(offered(family), (Masks{0b100, 0b101, 0b110, 0b111}));
  EXPECT_TRUE(family.prefers(NodeMask(0b100)));
  EXPECT_FALSE(family.prefers(NodeMask(0b101)));
}

TEST(MemoryHints, AreEmptyWhereTheMachineHasTooLittle) {
  MemoryHintsRequest request = machine(2, 17);
  request.reusable.push_back({NodeMask(0b11), {64 * kGiB}});
  EXPECT_EQ(memory_hints(request), (HintFamily{2, false, false, HintList{}}));
  EXPECT_EQ(memory_hints(request, 0), (HintFamily{2, false, false, HintList{}}));
}

TEST(MemoryHints, ListNodesInUseBesideUnusedOnesOnLargeMachines) {
  MemoryHintsRequest request = machine(40, 4);
  share(request, 0b0001);
  share(request, 0b0110);
  HintFamily family = memory_hints(request);
  const LinearHints& linear = std::get<LinearHints>(family.masks);
  EXPECT_EQ(linear.domain.bits(), all_nodes(40) & ~uint64_t{0b0111});
  EXPECT_EQ(linear.listed, (HintList{{NodeMask(0b0001), true}, {NodeMask(0b0110), false}}));
  EXPECT_FALSE(family.approximate);
  EXPECT_TRUE(family.prefers(NodeMask(uint64_t{1} << 39)));
  EXPECT_FALSE(family.offers(NodeMask(0b1001)));
}

}  // namespace
}  // namespace numalign
