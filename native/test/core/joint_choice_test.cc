#include "core/joint_choice.h"

#include <gtest/gtest.h>

#include <random>

#include "support/seed.h"

namespace numalign {
namespace {

ListedHint preferred(uint64_t mask) { return {NodeMask(mask), true}; }
ListedHint other(uint64_t mask) { return {NodeMask(mask), false}; }
HintFamily list_of(int nodes, HintList list) { return {nodes, false, false, std::move(list)}; }

// Four nodes in a row: neighbours are near.
const std::vector<uint32_t> kRow = {10, 12, 20, 30, 12, 10, 12, 20, 20, 12, 10, 12, 30, 20, 12, 10};

struct Ground {
  TopologyPolicy policy = TopologyPolicy::kBestEffort;
  std::vector<uint32_t> rooms = {5, 5, 5, 5};
  std::vector<uint32_t> distances = kRow;
  uint64_t within = 0b1111;
  int enumerated = kEnumeratedNodes;
};

JointChoice choose(const std::vector<HintFamily>& families, const Ground& ground = {}) {
  return choose_jointly(families, {.merge = {.nodes = static_cast<int>(ground.rooms.size()),
                                             .policy = ground.policy,
                                             .distances = ground.distances,
                                             .enumerated = ground.enumerated},
                                   .within = NodeMask(ground.within),
                                   .rooms = ground.rooms});
}

const HintFamily kAnyNode = list_of(4, {preferred(1), preferred(2), preferred(4), preferred(8)});
const HintFamily kAnyPair = list_of(4, {preferred(0b0011), preferred(0b0101), preferred(0b1001),
                                        preferred(0b0110), preferred(0b1010), preferred(0b1100)});

TEST(JointChoice, TakesTheNodeWithTheLeastFree) {
  JointChoice choice = choose({kAnyNode}, {.rooms = {5, 4, 3, 3}});
  EXPECT_EQ(choice.merged.mask, NodeMask(4)) << "the lower of two";
  EXPECT_EQ(std::tuple(choice.sets, choice.nearest, choice.tightest), std::tuple(4u, 4u, 2u));
  EXPECT_TRUE(choice.merged.preferred && choice.merged.admitted);
}

TEST(JointChoice, LooksAtDistancesBeforeWhatIsFree) {
  JointChoice choice = choose({kAnyPair}, {.rooms = {1, 9, 2, 9}});
  EXPECT_EQ(choice.merged.mask, NodeMask(0b0011)) << "nodes 0 and 2 have less free, and are farther apart";
  EXPECT_EQ(std::tuple(choice.sets, choice.nearest, choice.tightest), std::tuple(6u, 3u, 1u));
}

TEST(JointChoice, TakesTheLowestNodesWhereDistancesAreUnknownAndNodesEqual) {
  EXPECT_EQ(choose({kAnyPair}, {.distances = {}}).merged.mask, NodeMask(0b0011));
}

TEST(JointChoice, CoversWhatResourcesHaveOnDifferentNodes) {
  const std::vector<HintFamily> families{list_of(4, {preferred(1), preferred(8)}),
                                         list_of(4, {preferred(4), preferred(2)})};
  JointChoice choice = choose(families, {.rooms = {9, 9, 1, 1}});
  EXPECT_EQ(choice.merged.mask, NodeMask(0b1100)) << "nodes 0 and 1 are as near, and have more free";
  EXPECT_EQ(choice.nearest, 2u);
  EXPECT_TRUE(choice.merged.admitted && !choice.merged.preferred);
}

TEST(JointChoice, PrefersWhatAllPreferToWhatIsNarrower) {
  const std::vector<HintFamily> families{list_of(4, {other(1), preferred(0b0110)})};
  EXPECT_EQ(choose(families).merged.mask, NodeMask(0b0110));
}

TEST(JointChoice, AdmitsByPolicy) {
  const std::vector<HintFamily> apart{list_of(4, {preferred(1)}), list_of(4, {preferred(2)})};
  EXPECT_TRUE(choose(apart, {.policy = TopologyPolicy::kNone}).merged.admitted);
  EXPECT_FALSE(choose(apart, {.policy = TopologyPolicy::kRestricted}).merged.admitted);
  EXPECT_FALSE(choose(apart, {.policy = TopologyPolicy::kSingleNumaNode}).merged.admitted);
  EXPECT_TRUE(choose({kAnyPair}, {.policy = TopologyPolicy::kRestricted}).merged.admitted);
  EXPECT_FALSE(choose({kAnyPair}, {.policy = TopologyPolicy::kSingleNumaNode}).merged.admitted);
}

TEST(JointChoice, StaysWithinTheNodesThatItIsKeptTo) {
  for (int enumerated : {kEnumeratedNodes, 0}) {
    const Ground within{.within = 0b1100, .enumerated = enumerated};
    EXPECT_EQ(choose({kAnyNode}, within).merged.mask, NodeMask(0b0100));
    EXPECT_EQ(choose({kAnyPair}, within).merged.mask, NodeMask(0b1100));
    EXPECT_FALSE(choose({list_of(4, {preferred(0b0011)})}, within).merged.admitted);
  }
}

TEST(JointChoice, LeavesResourcesWithoutAPreferenceAlone) {
  const HintFamily any{4, true, false, HintList{}};
  EXPECT_EQ(choose({any}, {.within = 1}).merged, (MergedHint{false, NodeMask(0b1111), true, true, true}));
  EXPECT_EQ(choose({any, list_of(4, {preferred(8)})}).merged.mask, NodeMask(8));
}

// ---- laws

HintFamily random_family(std::mt19937& engine, int nodes, int enumerated = kEnumeratedNodes) {
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  if (between(0, 5) == 0) {
    HintList list;
    for (int i = between(1, 6); i > 0; i--) {
      list.push_back({NodeMask(static_cast<uint64_t>(between(1, (1 << nodes) - 1))), between(0, 1) == 1});
    }
    return {nodes, between(0, 3) == 0, between(0, 7) == 0, std::move(list)};
  }
  LinearHints hints;
  hints.domain = NodeMask(all_nodes(nodes));
  hints.narrowest = between(1, 2);
  Need need{static_cast<uint64_t>(between(1, 12)), SmallWords(static_cast<size_t>(nodes))};
  for (uint64_t& free : need.free) free = static_cast<uint64_t>(between(0, 8));
  hints.needs.push_back(std::move(need));
  return family_of(std::move(hints), nodes, enumerated);
}

TEST(JointChoice, IsTheBestOfAllSetsOnSmallMachines) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 5000; i++) {
    const int nodes = between(2, 8);
    std::vector<HintFamily> families;
    for (int f = between(1, 3); f > 0; f--) families.push_back(random_family(engine, nodes));
    Ground ground{.rooms = {}, .distances = {}, .within = all_nodes(nodes)};
    for (int node = 0; node < nodes; node++) ground.rooms.push_back(static_cast<uint32_t>(between(0, 4)));
    for (int pair = 0; pair < nodes * nodes; pair++)
      ground.distances.push_back(static_cast<uint32_t>(between(10, 13)));
    if (between(0, 2) == 0) ground.within = static_cast<uint64_t>(between(1, (1 << nodes) - 1));
    const JointChoice choice = choose(families, ground);
    if (choice.sets == 0) continue;
    // What it counts by, of any set.
    auto by = [&](uint64_t mask) {
      uint64_t distance = 0, room = 0;
      for_each_node(mask, [&](int a) {
        room += ground.rooms[a];
        for_each_node(mask, [&](int b) { distance += a == b ? 0 : ground.distances[a * nodes + b]; });
      });
      return std::tuple(count_ones(mask), distance, room, mask);
    };
    auto meets = [&](uint64_t mask) {
      return std::ranges::all_of(families, [&](const HintFamily& family) {
        if (choice.merged.preferred) return family.any_preferred || family.prefers(NodeMask(mask));
        auto* list = std::get_if<HintList>(&family.masks);
        if (family.any_preferred || family.any_other || (list && list->empty())) return true;
        for (uint64_t part = mask; part != 0; part = (part - 1) & mask) {
          if (family.offers(NodeMask(part))) return true;
        }
        return false;
      });
    };
    const uint64_t chosen = choice.merged.mask.bits();
    ASSERT_TRUE(meets(chosen) && (chosen & ~ground.within) == 0) << "choice " << i;
    for (uint64_t mask = 1; mask <= all_nodes(nodes); mask++) {
      if ((mask & ~ground.within) != 0 || !meets(mask)) continue;
      const bool is_preferred_by_any =
          !choice.merged.preferred || std::ranges::any_of(families, [&](const HintFamily& family) {
            return family.prefers(NodeMask(mask));
          });
      if (!is_preferred_by_any) continue;
      ASSERT_LE(by(chosen), by(mask)) << "choice " << i << ", mask " << mask;
    }
  }
}

TEST(JointChoice, AdmitsWhatTheMergeAdmitsOnNoMoreNodes) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 5000; i++) {
    const int nodes = between(2, 8);
    const int enumerated = between(0, 1) == 1 ? kEnumeratedNodes : 0;
    std::vector<HintFamily> families;
    for (int f = between(1, 3); f > 0; f--) families.push_back(random_family(engine, nodes, enumerated));
    Ground ground{.policy = static_cast<TopologyPolicy>(between(1, 3)), .rooms = {}, .distances = {}};
    ground.rooms.resize(static_cast<size_t>(nodes), 1);
    ground.within = all_nodes(nodes);
    ground.enumerated = enumerated;
    const MergedHint merged = merge_hints(
        families, {.nodes = nodes, .policy = ground.policy, .distances = {}, .enumerated = enumerated});
    const JointChoice choice = choose(families, ground);
    ASSERT_EQ(choice.merged.admitted, merged.admitted) << "merge " << i;
    if (!merged.preferred) continue;
    ASSERT_LE(choice.merged.mask.size(), merged.mask.size()) << "merge " << i;
  }
}

}  // namespace
}  // namespace numalign
