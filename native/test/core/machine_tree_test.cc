#include "core/machine_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace numalign {
namespace {

using Kind = MachineTree::Kind;
constexpr auto kNothing = std::nullopt;

std::vector<int> column(const MachineTree& tree, int CpuInfo::*member,
                        const std::map<int, int>& node_of_cpu = {}) {
  Result<std::vector<CpuInfo>> cpus = tree.cpus(node_of_cpu);
  EXPECT_TRUE(cpus.ok());
  std::vector<int> values;
  for (const CpuInfo& cpu : cpus.value()) values.push_back(cpu.*member);
  return values;
}

using Ids = std::vector<int>;

// A machine with PUs 0 to count - 1 directly in it.
struct Flat {
  explicit Flat(unsigned count) {
    for (unsigned id = 0; id < count; id++) pus.push_back(tree.add(Kind::kPu, root, id));
  }
  MachineTree tree{};
  int root = tree.add(Kind::kOther, MachineTree::kNoParent, kNothing);
  std::vector<int> pus{};
};

TEST(MachineTree, ListsCpusAscendingWhateverTheirPlace) {
  MachineTree tree;
  int root = tree.add(Kind::kOther, MachineTree::kNoParent, kNothing);
  for (unsigned id : {4U, 0U, 2U}) tree.add(Kind::kPu, root, id);
  EXPECT_EQ(column(tree, &CpuInfo::cpu), (Ids{0, 2, 4}));
}

TEST(MachineTree, PutsCpusOnTheNearestOrdinaryMemoryFirst) {
  Flat flat(2);
  flat.tree.attach(flat.pus[1], 7, false);
  flat.tree.attach(flat.root, 3, true);
  EXPECT_EQ(column(flat.tree, &CpuInfo::node), (Ids{3, 3}));
}

TEST(MachineTree, PutsCpusOnSpecialMemoryWhereNoOrdinaryIsNear) {
  Flat flat(2);
  flat.tree.attach(flat.pus[1], 7, false);
  flat.tree.attach(flat.root, 3, false);
  EXPECT_EQ(column(flat.tree, &CpuInfo::node), (Ids{3, 7}));
}

TEST(MachineTree, TakesTheFirstOfSeveralNodesOfOnePlace) {
  Flat flat(1);
  for (int node : {5, 4}) flat.tree.attach(flat.root, node, true);
  EXPECT_EQ(column(flat.tree, &CpuInfo::node), (Ids{5}));
}

TEST(MachineTree, PutsCpusThatNoNodeIsNearToOnTheLowestNodeAround) {
  MachineTree tree;
  int root = tree.add(Kind::kOther, MachineTree::kNoParent, kNothing);
  int first = tree.add(Kind::kPackage, root, 0);
  int second = tree.add(Kind::kPackage, root, 1);
  tree.attach(tree.add(Kind::kPu, second, 1), 9, true);
  tree.attach(tree.add(Kind::kPu, second, 2), 8, true);
  tree.add(Kind::kPu, first, 0);
  EXPECT_EQ(column(tree, &CpuInfo::node), (Ids{8, 9, 8}));
}

TEST(MachineTree, BelievesLinuxWhichNodeACpuIsOn) {
  Flat flat(2);
  flat.tree.attach(flat.root, 3, true);
  EXPECT_EQ(column(flat.tree, &CpuInfo::node, {{1, 2}}), (Ids{3, 2}));
}

TEST(MachineTree, CountsPackagesItselfWhereOneHasNoId) {
  MachineTree tree;
  int root = tree.add(Kind::kOther, MachineTree::kNoParent, kNothing);
  tree.add(Kind::kPu, tree.add(Kind::kPackage, root, 8), 0);
  tree.add(Kind::kPu, tree.add(Kind::kPackage, root, kNothing), 1);
  EXPECT_EQ(column(tree, &CpuInfo::package), (Ids{0, 1}));
}

TEST(MachineTree, GivesCpusOutsideOfAnyPackageAnIdOfTheirOwn) {
  MachineTree tree;
  int root = tree.add(Kind::kOther, MachineTree::kNoParent, kNothing);
  tree.add(Kind::kPu, tree.add(Kind::kPackage, root, 8), 0);
  tree.add(Kind::kPu, root, 1);
  EXPECT_EQ(column(tree, &CpuInfo::package), (Ids{8, 9}));
}

TEST(MachineTree, SplitsACoreOnTwoNodes) {
  MachineTree tree;
  int root = tree.add(Kind::kOther, MachineTree::kNoParent, kNothing);
  int core = tree.add(Kind::kCore, root, 0);
  for (unsigned id = 0; id < 4; id++) tree.add(Kind::kPu, core, id);
  EXPECT_EQ(column(tree, &CpuInfo::core, {{0, 0}, {1, 1}, {2, 0}, {3, 1}}), (Ids{0, 1, 0, 1}));
}

TEST(MachineTree, GivesTheSecondPartOfAnL3InTwoPackagesAnIdThatNoOtherHas) {
  MachineTree tree;
  int root = tree.add(Kind::kOther, MachineTree::kNoParent, kNothing);
  int l3 = tree.add(Kind::kL3Cache, root, 4);
  tree.add(Kind::kPu, tree.add(Kind::kPackage, l3, 0), 0);
  tree.add(Kind::kPu, tree.add(Kind::kPackage, l3, 1), 1);
  EXPECT_EQ(column(tree, &CpuInfo::l3), (Ids{4, 6}));
}

TEST(MachineTree, RefusesAMachineWithoutCpus) {
  EXPECT_EQ(Flat(0).tree.cpus({}).error().code, ErrorCode::kHwloc);
}

TEST(MachineTree, RefusesIdsBeyondItsSets) {
  Flat flat(1);
  flat.tree.add(Kind::kPu, flat.root, CpuSet::kMaxId + 1U);
  EXPECT_NE(flat.tree.cpus({}).error().message.find(std::to_string(CpuSet::kMaxId)), std::string::npos);
}

}  // namespace
}  // namespace numalign
