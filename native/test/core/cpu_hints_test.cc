#include "core/cpu_hints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/id_list.h"
#include "support/random_machine.h"
#include "support/seed.h"

namespace numalign {
namespace {

CpuSet cpus(std::string_view list) { return parse_id_list<CpuTag>(list).value(); }

// Nodes of two CPUs each, one thread a core, two nodes a package; the last node has memory only.
std::shared_ptr<const Topology> machine(int nodes) {
  TopologySpec spec;
  for (int cpu = 0; cpu < 2 * nodes; cpu++)
    spec.cpus.push_back({cpu, cpu, cpu / 4, cpu / 4 * 4, cpu / 4, cpu / 2});
  for (int node = 0; node <= nodes; node++) spec.nodes.push_back({node, 0, {}, {}});
  return Topology::create(std::move(spec)).value();
}

bool offers(const HintFamily& family, uint64_t mask) { return family.offers(NodeMask(mask)); }
bool prefers(const HintFamily& family, uint64_t mask) { return family.prefers(NodeMask(mask)); }

TEST(CpuHints, OfferEveryMaskWithEnoughAndPreferTheLeastThatCouldEverDo) {
  HintFamily family = cpu_hints(*machine(2), {cpus("0-3"), {}, 2});
  EXPECT_TRUE(prefers(family, 0b01) && prefers(family, 0b10));
  EXPECT_TRUE(offers(family, 0b11) && !prefers(family, 0b11));
  EXPECT_FALSE(offers(family, 0b100) || offers(family, 0b101)) << "a node without CPUs";
  EXPECT_FALSE(prefers(cpu_hints(*machine(2), {cpus("0,2"), {}, 2}), 0b11))
      << "one node could do on the empty machine";
}

TEST(CpuHints, IncludeTheNodesOfReusableCpusAndCountNoneTwice) {
  HintFamily family = cpu_hints(*machine(2), {cpus("0,2,3"), cpus("0"), 2});
  EXPECT_FALSE(offers(family, 0b01)) << "CPU 0 is one CPU";
  EXPECT_FALSE(offers(family, 0b10)) << "it lacks CPU 0's node";
  EXPECT_TRUE(offers(family, 0b11));
}

TEST(CpuHints, AreEmptyWhereNothingCanDo) {
  HintFamily family = cpu_hints(*machine(2), {cpus("0"), {}, 2});
  EXPECT_EQ(family, (HintFamily{3, false, false, HintList{}}));
}

TEST(CpuHints, PreferAllMasksOfOneSocketWhenAlignedBySocket) {
  HintFamily family = cpu_hints(*machine(4), {cpus("0-7"), {}, 2, true});
  EXPECT_TRUE(prefers(family, 0b0001) && prefers(family, 0b0011) && prefers(family, 0b1100));
  EXPECT_FALSE(prefers(family, 0b0110));
}

TEST(CpuHints, SayTheSameInBothForms) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < 200; i++) {
    auto topology = Topology::create(test::random_machine(between)).value();
    CpuHintsRequest request{test::random_available(between, *topology),
                            test::random_available(between, *topology), between(1, topology->cpus().size()),
                            between(0, 1) == 1};
    HintFamily bits = cpu_hints(*topology, request);
    HintFamily linear = cpu_hints(*topology, request, 0);
    EXPECT_EQ(HintFamily::from_words(bits.to_words()), bits);
    EXPECT_EQ(HintFamily::from_words(linear.to_words()), linear);
    for (uint64_t mask = 1; mask <= all_nodes(bits.nodes); mask++) {
      ASSERT_EQ(offers(bits, mask), offers(linear, mask)) << mask;
      ASSERT_EQ(prefers(bits, mask), prefers(linear, mask)) << mask;
    }
  }
}

// The amounts that the whole cores of `available` on the nodes of a mask add up to.
std::set<int> sums_of(const Topology& topology, const CpuSet& available, uint64_t mask) {
  std::map<int, std::vector<int>> threads;
  std::map<int, int> node_of;
  for (const CpuInfo& cpu : topology.spec().cpus) {
    threads[cpu.core].push_back(cpu.cpu);
    node_of[cpu.core] = cpu.node;
  }
  std::set<int> sums{0};
  for (const auto& [core, cpus] : threads) {
    const auto node = std::ranges::find(topology.spec().nodes, node_of[core], &NodeInfo::node);
    const auto position = node - topology.spec().nodes.begin();
    const bool is_inside = (mask >> position & 1) != 0;
    if (!is_inside || !std::ranges::all_of(cpus, [&](int cpu) { return available.contains(cpu); })) continue;
    std::set<int> more = sums;
    for (int sum : sums) more.insert(sum + static_cast<int>(cpus.size()));
    sums = std::move(more);
  }
  return sums;
}

TEST(CpuHints, OfWholeCoresOfferTheMasksWhoseCoresAddUpAndPreferTheFewestNodesThatCouldEver) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  for (int i = 0; i < static_cast<int>(test::rounds(2000)); i++) {
    auto topology = Topology::create(test::random_machine(between, {6, 60})).value();
    CpuHintsRequest request{.available = test::random_available(between, *topology),
                            .count = between(1, std::min(topology->cpus().size(), 20)),
                            .whole_cores = true};
    HintFamily bits = cpu_hints(*topology, request);
    HintFamily linear = cpu_hints(*topology, request, 0);
    EXPECT_EQ(HintFamily::from_words(linear.to_words()), linear);
    const uint64_t all = all_nodes(static_cast<int>(topology->spec().nodes.size()));
    auto adds_up = [&](const CpuSet& free, uint64_t mask) {
      return sums_of(*topology, free, mask).contains(request.count);
    };
    if (!adds_up(request.available, all)) continue;  // left to the allocation, which says why
    int narrowest = NodeMask::kBits;
    for (uint64_t mask = 1; mask <= all; mask++) {
      if (adds_up(topology->cpus(), mask)) narrowest = std::min(narrowest, count_ones(mask));
    }
    for (uint64_t mask = 1; mask <= all; mask++) {
      bool has_cpus = true;  // each of its nodes
      for_each_node(mask, [&](int at) {
        has_cpus &=
            std::ranges::count(topology->spec().cpus, topology->spec().nodes[at].node, &CpuInfo::node) > 0;
      });
      const bool is_right = has_cpus && adds_up(request.available, mask);
      ASSERT_EQ(offers(bits, mask), is_right) << request.count << " CPUs on " << mask;
      ASSERT_EQ(prefers(bits, mask), is_right && count_ones(mask) == narrowest);
      ASSERT_FALSE(offers(linear, mask) && !is_right);
      if (count_ones(mask) == 1 || !linear.approximate) {
        ASSERT_EQ(offers(linear, mask), is_right);
      }
    }
  }
}

// By node: the threads of each core.
std::shared_ptr<const Topology> uneven_machine(const std::vector<std::vector<int>>& nodes) {
  TopologySpec spec;
  int next = 0;
  for (int node = 0; node < static_cast<int>(nodes.size()); node++) {
    for (int threads : nodes[static_cast<size_t>(node)]) {
      for (const int core = next; next < core + threads; next++) {
        spec.cpus.push_back({next, core, 0, 0, 0, node});
      }
    }
    spec.nodes.push_back({node, 0, {}, {}});
  }
  return Topology::create(std::move(spec)).value();
}

TEST(CpuHints, OfWholeCoresAreForEachContainerOfAPod) {
  auto topology = uneven_machine({{7, 8}, {1, 1, 8, 5}});
  CpuHintsRequest request{.available = topology->cpus(), .count = 15, .whole_cores = true};
  for (int enumerated : {kEnumeratedNodes, 0}) {
    request.claims = {};
    EXPECT_TRUE(prefers(cpu_hints(*topology, request, enumerated), 0b01));
    request.claims = {{1, false}, {6, false}, {8, false}};
    HintFamily family = cpu_hints(*topology, request, enumerated);
    EXPECT_FALSE(offers(family, 0b01));
    EXPECT_TRUE(prefers(family, 0b10));
    EXPECT_TRUE(offers(family, 0b11) && !prefers(family, 0b11));
  }
}

TEST(CpuHints, OfNestedSizesAreForEachContainerOfAPod) {
  auto topology = uneven_machine({{2, 2, 2, 1, 1}, {2, 2, 1, 1, 1, 1}});
  CpuHintsRequest request{.available = topology->cpus(), .count = 7, .whole_cores = true};
  request.claims = {{3, false}, {1, true}, {1, false}, {3, false}};
  for (int enumerated : {kEnumeratedNodes, 0}) {
    HintFamily family = cpu_hints(*topology, request, enumerated);
    EXPECT_FALSE(offers(family, 0b01)) << "two single threads for three odd containers";
    EXPECT_TRUE(prefers(family, 0b10));
    EXPECT_FALSE(family.approximate);
  }
}

TEST(CpuHints, OfWholeCoresAreOnTheFewestOfManyNodes) {
  auto topology = uneven_machine(std::vector<std::vector<int>>(20, {2, 2, 2, 3, 3, 3}));
  CpuHintsRequest request{.available = topology->cpus(), .count = 41, .whole_cores = true};
  HintFamily family = cpu_hints(*topology, request);
  EXPECT_TRUE(prefers(family, 0b111));
  EXPECT_TRUE(prefers(family, uint64_t{0b111} << 17));
  EXPECT_FALSE(offers(family, 0b11));
  EXPECT_TRUE(offers(family, all_nodes(20)) && !prefers(family, all_nodes(20)));
  request.available = topology->cpus() - cpus("7-14,22-29");  // nodes 0 and 1 have half of their cores
  family = cpu_hints(*topology, request);
  EXPECT_FALSE(offers(family, 0b111));
  EXPECT_TRUE(prefers(family, 0b11100));
}

// One node has the only odd core, so that most sets of the fewest nodes do not do.
TEST(CpuHints, OfWholeCoresFindTheOnlyNodeThatDoesAmongSixtyFour) {
  std::vector<std::vector<int>> nodes(64, {4, 4, 6, 6, 4});
  nodes[40] = {4, 4, 6, 5};
  auto topology = uneven_machine(nodes);
  CpuHintsRequest request{.available = topology->cpus(), .count = 61, .whole_cores = true};
  HintFamily family = cpu_hints(*topology, request);
  EXPECT_TRUE(prefers(family, uint64_t{0b111} << 40));
  EXPECT_FALSE(offers(family, 0b111));
}

TEST(CpuHints, OfWholeCoresLetAGrantKeepWhatItHas) {
  TopologySpec spec;  // node 0: {0,1} {2,3}, node 1: {4} {5,6}
  for (int cpu = 0; cpu < 4; cpu++) spec.cpus.push_back({cpu, cpu / 2 * 2, 0, 0, 0, 0});
  for (auto [cpu, core] : {std::pair{4, 4}, {5, 5}, {6, 5}}) spec.cpus.push_back({cpu, core, 0, 0, 0, 1});
  for (int node : {0, 1}) spec.nodes.push_back({node, 0, {}, {}});
  auto topology = Topology::create(std::move(spec)).value();
  CpuHintsRequest request{.available = cpus("2-6"), .reusable = cpus("0-1"), .count = 3, .whole_cores = true};
  request.keeps_reusable = true;
  EXPECT_TRUE(offers(cpu_hints(*topology, request), 0b11));
  EXPECT_FALSE(offers(cpu_hints(*topology, request), 0b01)) << "one more would be half a core";
  request.count = 2;
  EXPECT_TRUE(offers(cpu_hints(*topology, request), 0b01)) << "it has them already";
}

// Distinct nodes: the words of masks and the search agree.
TEST(CpuHints, OfWholeCoresForPodsSayTheSameInBothForms) {
  std::mt19937 engine(test::seed());
  auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(engine); };
  int compared = 0;
  for (uint32_t i = 0; i < test::rounds(1000); i++) {
    auto topology = Topology::create(test::random_machine(between, {8, 60})).value();
    CpuHintsRequest request{.available = test::random_available(between, *topology), .whole_cores = true};
    request.reusable =
        between(0, 3) == 0 ? whole_cores(*topology, request.available) & cpus("0-3") : CpuSet();
    for (int n = between(1, 4); n > 0; n--) request.claims.push_back({between(1, 6), between(0, 3) == 0});
    request.count = most_at_once(request.claims, [](int count) { return count; });
    HintFamily bits = cpu_hints(*topology, request);
    HintFamily linear = cpu_hints(*topology, request, 0);
    EXPECT_EQ(HintFamily::from_words(linear.to_words()), linear);
    if (linear.approximate) continue;
    compared++;
    for (uint64_t mask = 1; mask <= all_nodes(bits.nodes); mask++) {
      ASSERT_EQ(offers(bits, mask), offers(linear, mask)) << mask;
      ASSERT_EQ(prefers(bits, mask), prefers(linear, mask)) << mask;
    }
  }
  EXPECT_GT(compared, 100);
}

TEST(WholeCores, AreThoseWithEveryThread) {
  TopologySpec spec;
  for (int cpu = 0; cpu < 4; cpu++) spec.cpus.push_back({cpu, cpu / 2 * 2, 0, 0, 0, 0});
  spec.cpus.push_back({4, 4, 0, 0, 0, 0});
  spec.nodes.push_back({0, 0, {}, {}});
  auto topology = Topology::create(std::move(spec)).value();
  EXPECT_EQ(whole_cores(*topology, cpus("0,2-4,9")), cpus("2-4"));
}

}  // namespace
}  // namespace numalign
