#include "core/topology.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "support/best_fit_laws.h"
#include "support/random_machine.h"
#include "support/seed.h"

namespace numalign {
namespace {

// Two packages with a NUMA node each, two cores of two threads in each.
TopologySpec small_machine() {
  TopologySpec spec;
  for (int cpu = 0; cpu < 8; cpu++) {
    int package = cpu / 4;
    spec.cpus.push_back({cpu, cpu / 2 * 2, package, package * 4, package, package});
  }
  spec.nodes = {{0, 0, {}, {10, 20}}, {1, 0, {}, {20, 10}}};
  return spec;
}

std::string refusal(TopologySpec spec) {
  auto topology = Topology::create(std::move(spec));
  if (topology.ok()) return "accepted";
  EXPECT_EQ(topology.error().code, ErrorCode::kInvalidTopology);
  return topology.error().message;
}

CpuSet cpus_of(const Level& level, int element) {
  std::vector<uint64_t> words;
  for (const Level::WordMask& mask : level.masks(element)) {
    words.resize(std::max(words.size(), size_t{mask.word} + 1));
    words[mask.word] |= mask.mask;
  }
  return CpuSet::from_words(words);
}

TEST(Topology, KnowsWhatAMachineIsMadeOf) {
  auto topology = Topology::create(small_machine()).value();
  EXPECT_EQ(topology->cpus(), (CpuSet{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(topology->words(), 1u);
  EXPECT_EQ(topology->cores().count(), 4);
  EXPECT_EQ(topology->cores().id(3), 6);
  EXPECT_EQ(topology->cores().uniform_size(), 2);
  EXPECT_EQ(topology->packages().count(), 2);
  EXPECT_EQ(topology->packages().size(0), 4);
  EXPECT_EQ(topology->nodes().count(), 2);
  EXPECT_EQ(topology->l3_groups().count(), 2);
  EXPECT_EQ(topology->cores_of_node(), (Topology::Members{{0, 1}, {2, 3}}));
  EXPECT_EQ(topology->cores_of_package(), (Topology::Members{{0, 1}, {2, 3}}));
  EXPECT_EQ(topology->cores_of_l3(), (Topology::Members{{0, 1}, {2, 3}}));
  EXPECT_EQ(topology->l3_groups_of_node(), (Topology::Members{{0}, {1}}));
  EXPECT_EQ(topology->nodes_of_package(), (Topology::Members{{0}, {1}}));
  EXPECT_EQ(topology->packages_of_node(), (Topology::Members{{0}, {1}}));
}

TEST(Topology, RefusesAMachineWithoutCpus) {
  EXPECT_EQ(refusal({}), "a machine needs at least one CPU");
  TopologySpec spec = small_machine();
  spec.cpus.clear();
  EXPECT_EQ(refusal(spec), "a machine needs at least one CPU");
}

TEST(Topology, RefusesACpuIdOutOfRange) {
  for (int id : {-1, CpuSet::kMaxId + 1}) {
    TopologySpec spec = small_machine();
    spec.cpus[3].cpu = id;
    EXPECT_EQ(refusal(spec), "CPU " + std::to_string(id) + ": ids go from 0 to 65535");
  }
}

TEST(Topology, RefusesACpuGivenTwice) {
  TopologySpec spec = small_machine();
  spec.cpus[7].cpu = 2;
  EXPECT_EQ(refusal(spec), "CPU 2 is given twice");
}

TEST(Topology, RefusesANodeIdOutOfRange) {
  for (int id : {-1, NodeSet::kMaxId + 1}) {
    TopologySpec spec = small_machine();
    spec.nodes[1].node = id;
    EXPECT_EQ(refusal(spec), "NUMA node " + std::to_string(id) + ": ids go from 0 to 1023");
  }
}

TEST(Topology, RefusesANodeGivenTwice) {
  TopologySpec spec = small_machine();
  spec.nodes.push_back(spec.nodes[1]);
  for (NodeInfo& node : spec.nodes) node.distances.clear();
  EXPECT_EQ(refusal(spec), "NUMA node 1 is given twice");
}

TEST(Topology, RefusesDistancesOfTheWrongLength) {
  TopologySpec spec = small_machine();
  spec.nodes[1].distances = {20, 10, 20};
  EXPECT_EQ(refusal(spec), "NUMA node 1 has 3 distances for 2 nodes");
}

TEST(Topology, RefusesACpuOnAnUnknownNode) {
  TopologySpec spec = small_machine();
  spec.cpus[5].node = 7;
  EXPECT_EQ(refusal(spec), "CPU 5 is on NUMA node 7, which is not described");
}

TEST(Topology, RefusesNegativeIdsOfWhatACpuBelongsTo) {
  for (int CpuInfo::*member :
       {&CpuInfo::core, &CpuInfo::package, &CpuInfo::die, &CpuInfo::l3, &CpuInfo::node}) {
    TopologySpec spec = small_machine();
    spec.cpus[4].*member = -3;
    EXPECT_EQ(refusal(spec), "CPU 4 belongs to something with the negative id -3");
  }
}

TEST(Topology, RefusesACoreInTwoPackages) {
  TopologySpec spec = small_machine();
  spec.cpus[3].package = 1;
  EXPECT_EQ(refusal(spec), "core 2 spans packages 0 (CPU 2) and 1 (CPU 3)");
}

TEST(Topology, RefusesACoreOnTwoNodes) {
  TopologySpec spec = small_machine();
  spec.cpus[3].node = 1;
  EXPECT_EQ(refusal(spec), "core 2 spans NUMA nodes 0 (CPU 2) and 1 (CPU 3)");
}

TEST(Topology, RefusesACoreInTwoL3Groups) {
  TopologySpec spec = small_machine();
  spec.cpus[3].l3 = 5;
  EXPECT_EQ(refusal(spec), "core 2 spans L3 groups 0 (CPU 2) and 5 (CPU 3)");
}

TEST(Topology, RefusesAnL3GroupInTwoPackages) {
  TopologySpec spec = small_machine();
  for (CpuInfo& cpu : spec.cpus) cpu.l3 = 9;
  EXPECT_EQ(refusal(spec), "L3 group 9 spans packages 0 (CPU 0) and 1 (CPU 4)");
}

TEST(Topology, AcceptsAnL3GroupThatSpansNodes) {
  TopologySpec spec = small_machine();
  for (CpuInfo& cpu : spec.cpus) cpu.package = cpu.l3 = 0;
  auto topology = Topology::create(spec).value();
  EXPECT_EQ(topology->l3_groups_of_node(), (Topology::Members{{0}, {0}}));
}

TEST(Topology, AcceptsNodesWithoutCpus) {
  TopologySpec spec = small_machine();
  spec.nodes.push_back({NodeSet::kMaxId, uint64_t{1} << 40, {}, {}});
  for (NodeInfo& node : spec.nodes) node.distances.clear();
  auto topology = Topology::create(spec).value();
  EXPECT_EQ(topology->nodes().count(), 2);
  EXPECT_EQ(topology->spec().nodes.size(), 3u);
}

TEST(Topology, KeepsTheGreatestIdsOfTheKernel) {
  TopologySpec spec;
  spec.cpus = {{16383, 16383, 0, 16383, 0, NodeSet::kMaxId},
               {CpuSet::kMaxId, CpuSet::kMaxId, 7, 65535, 7, 0}};
  spec.nodes = {{0, 0, {}, {}}, {NodeSet::kMaxId, 0, {}, {}}};
  auto topology = Topology::create(spec).value();
  EXPECT_EQ(topology->cpus(), (CpuSet{16383, 65535}));
  EXPECT_EQ(topology->words(), 1024u);
  EXPECT_EQ(topology->nodes().id(1), 1023);
  EXPECT_EQ(cpus_of(topology->nodes(), 1), CpuSet{16383});
  EXPECT_EQ(cpus_of(topology->nodes(), 0), CpuSet{65535});
}

TEST(Topology, SortsItsDescription) {
  TopologySpec spec = small_machine();
  std::swap(spec.cpus[0], spec.cpus[6]);
  std::swap(spec.nodes[0], spec.nodes[1]);
  spec.nodes[0].hugepages = {{uint64_t{1} << 30, 1}, {uint64_t{1} << 21, 2}};
  auto topology = Topology::create(spec).value();
  EXPECT_EQ(topology->spec().cpus, small_machine().cpus);
  EXPECT_EQ(topology->spec().nodes[0].node, 0);
  EXPECT_EQ(topology->spec().nodes[1].hugepages[0].page_bytes, uint64_t{1} << 21);
}

TEST(Topology, HasNoUniformSizeWhereElementsDiffer) {
  TopologySpec spec = small_machine();
  spec.cpus.pop_back();  // one thread is offline
  auto topology = Topology::create(spec).value();
  EXPECT_EQ(topology->cores().uniform_size(), 0);
  EXPECT_EQ(topology->packages().uniform_size(), 0);
  EXPECT_EQ(topology->cores().size(0), 2);
  EXPECT_EQ(topology->cores().size(3), 1);
}

// Each level splits the CPUs of the machine as the description says, ids ascending.
void expect_level(const Topology& topology, const Level& level, int CpuInfo::*member) {
  std::map<int, CpuSet> expected = test::cpus_by(topology, member);
  ASSERT_EQ(level.count(), static_cast<int>(expected.size()));
  std::vector<uint64_t> all_free(topology.words(), ~uint64_t{0});
  int element = 0;
  for (const auto& [id, cpus] : expected) {
    ASSERT_EQ(level.id(element), id);
    ASSERT_EQ(level.size(element), cpus.size());
    ASSERT_EQ(cpus_of(level, element), cpus);
    ASSERT_EQ(level.free_in(element, all_free), cpus.size());
    element++;
  }
}

void expect_members(const Topology::Members& members, const Level& outer, const Level& inner) {
  ASSERT_EQ(members.size(), static_cast<size_t>(outer.count()));
  for (int i = 0; i < outer.count(); i++) {
    std::vector<int> expected;
    for (int j = 0; j < inner.count(); j++) {
      if (cpus_of(outer, i).intersects(cpus_of(inner, j))) expected.push_back(j);
    }
    ASSERT_EQ(members[i], expected);
  }
}

TEST(Topology, SplitsEveryMachineAsDescribed) {
  for (uint32_t round = 0; round < test::rounds(150); round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    TopologySpec spec = test::random_machine(between, {.max_nodes = between(1, 64), .max_cpus = 160});
    TopologySpec shuffled = spec;
    test::shuffle(between, shuffled.cpus);
    auto created = Topology::create(shuffled);
    ASSERT_TRUE(created.ok()) << created.error().message;
    const Topology& topology = *created.value();
    std::ranges::sort(spec.cpus, {}, &CpuInfo::cpu);
    ASSERT_EQ(topology.spec().cpus, spec.cpus);
    for (NodeInfo& node : spec.nodes) {
      if (std::ranges::find(spec.cpus, node.node, &CpuInfo::node) != spec.cpus.end()) {
        node.tier = MemoryTier::kDram;
      }
    }
    ASSERT_EQ(topology.spec().nodes, spec.nodes);
    ASSERT_EQ(topology.cpus(), spec.possible);
    ASSERT_NO_FATAL_FAILURE(expect_level(topology, topology.cores(), &CpuInfo::core));
    ASSERT_NO_FATAL_FAILURE(expect_level(topology, topology.l3_groups(), &CpuInfo::l3));
    ASSERT_NO_FATAL_FAILURE(expect_level(topology, topology.packages(), &CpuInfo::package));
    ASSERT_NO_FATAL_FAILURE(expect_level(topology, topology.nodes(), &CpuInfo::node));
    ASSERT_NO_FATAL_FAILURE(
        expect_members(topology.cores_of_package(), topology.packages(), topology.cores()));
    ASSERT_NO_FATAL_FAILURE(expect_members(topology.cores_of_node(), topology.nodes(), topology.cores()));
    ASSERT_NO_FATAL_FAILURE(expect_members(topology.cores_of_l3(), topology.l3_groups(), topology.cores()));
    ASSERT_NO_FATAL_FAILURE(
        expect_members(topology.l3_groups_of_node(), topology.nodes(), topology.l3_groups()));
    ASSERT_NO_FATAL_FAILURE(
        expect_members(topology.nodes_of_package(), topology.packages(), topology.nodes()));
    ASSERT_NO_FATAL_FAILURE(
        expect_members(topology.packages_of_node(), topology.nodes(), topology.packages()));
  }
}

TEST(Topology, TakesTheAddressesThatLinuxGivesPciDevices) {
  for (const char* id :
       {"0000:00:00.0", "0000:ff:1f.7", "ffff:3b:00.0", "10000:e1:00.0", "12345678:3b:00.0"}) {
    EXPECT_TRUE(is_pci_address(id)) << id;
  }
  for (const char* id :
       {"", "00:00.0", "000:00:00.0", "0000:3B:00.0", "0000:3b:00.8", "0000:3b:00.", "0000:3b.00.0",
        "0000:3b:00:0", "123456789:3b:00.0", "0000:3b:00.0 ", "g000:3b:00.0"}) {
    EXPECT_FALSE(is_pci_address(id)) << id;
  }
}

TEST(Topology, SortsDevicesByIdAndTheirNodes) {
  TopologySpec spec = small_machine();
  spec.devices = {{.id = "0000:82:00.0", .nodes = {1, 0, 1}}, {.id = "0000:01:00.0"}};
  auto topology = Topology::create(spec).value();
  EXPECT_EQ(topology->spec().devices,
            (std::vector<PciDevice>{{.id = "0000:01:00.0"}, {.id = "0000:82:00.0", .nodes = {0, 1}}}));
}

TEST(Topology, RefusesDevicesThatContradictTheMachine) {
  auto refused = [](std::vector<PciDevice> devices) {
    TopologySpec spec = small_machine();
    spec.devices = std::move(devices);
    return refusal(spec);
  };
  const std::string id = "0000:01:00.0";
  EXPECT_EQ(refused({{.id = id}, {.id = "0000:02:00.0"}, {.id = id}}),
            "PCI device 0000:01:00.0 is given twice");
  EXPECT_EQ(refused({{.id = id, .nodes = {0, 2}}}),
            "PCI device 0000:01:00.0 is near NUMA node 2, which is not described");
  EXPECT_EQ(refused({{.id = "x"}}), "PCI device \"x\": \"x\" is not an address like 0000:3b:00.0");
  EXPECT_EQ(refused({{.id = id, .parent = "y"}}),
            "PCI device \"0000:01:00.0\": \"y\" is not an address like 0000:3b:00.0");
  EXPECT_EQ(refused({{.id = id, .parent = id}}), "PCI device 0000:01:00.0 is its own parent");
}

}  // namespace
}  // namespace numalign
