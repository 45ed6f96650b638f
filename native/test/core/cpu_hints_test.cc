#include "core/cpu_hints.h"

#include <gtest/gtest.h>

#include <random>

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
