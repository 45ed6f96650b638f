#include "core/housekeeping.h"

#include <gtest/gtest.h>

namespace numalign {
namespace {

// Three NUMA nodes of two CPUs in one row: 0-1, 2-3, 4-5.
std::shared_ptr<const Topology> machine(bool has_distances = true) {
  TopologySpec spec;
  for (int cpu = 0; cpu < 6; cpu++) {
    int node = cpu / 2;
    spec.cpus.push_back({cpu, cpu, node, node * 2, node, node});
  }
  spec.nodes = {{0, 0, {}, {10, 20, 30}}, {1, 0, {}, {20, 10, 20}}, {2, 0, {}, {30, 20, 10}}};
  if (!has_distances) {
    for (NodeInfo& node : spec.nodes) node.distances.clear();
  }
  return Topology::create(spec).value();
}

TEST(Housekeeping, IsOfTheBaseLessWhatIsQuiet) {
  EXPECT_EQ(housekeeping_cpus(*machine(), {0, 1, 2}, {1}), (CpuSet{0, 2}));
}

TEST(Housekeeping, KeepsOfflineCpusOfTheBase) {
  EXPECT_EQ(housekeeping_cpus(*machine(), {0, 1, 9}, {1}), (CpuSet{0, 9}));
}

TEST(Housekeeping, StaysOnTheNodesOfTheBase) {
  EXPECT_EQ(housekeeping_cpus(*machine(), {2}, {2}), CpuSet{3});
  EXPECT_EQ(housekeeping_cpus(*machine(), {2, 9}, {2}), CpuSet{3});
  EXPECT_EQ(housekeeping_cpus(*machine(), {0, 2}, {0, 2}), (CpuSet{1, 3}));
}

TEST(Housekeeping, GoesToTheNearestNodesThatHaveCpus) {
  EXPECT_EQ(housekeeping_cpus(*machine(), {0}, {0, 1}), (CpuSet{2, 3}));
  EXPECT_EQ(housekeeping_cpus(*machine(), {0}, {0, 1, 2, 3}), (CpuSet{4, 5}));
  EXPECT_EQ(housekeeping_cpus(*machine(), {3}, {2, 3}), (CpuSet{0, 1, 4, 5}));
}

TEST(Housekeeping, GoesAnywhereWhereNoDistancesAreKnown) {
  EXPECT_EQ(housekeeping_cpus(*machine(false), {0}, {0, 1, 2}), (CpuSet{3, 4, 5}));
  EXPECT_EQ(housekeeping_cpus(*machine(), {9}, {2}), (CpuSet{0, 1, 3, 4, 5}));
}

TEST(Housekeeping, IsEmptyWhereEveryCpuIsQuiet) {
  EXPECT_TRUE(housekeeping_cpus(*machine(), {0}, {0, 1, 2, 3, 4, 5}).empty());
}

}  // namespace
}  // namespace numalign
