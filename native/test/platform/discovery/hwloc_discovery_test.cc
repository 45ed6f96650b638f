#include "platform/discovery/hwloc_discovery.h"

#include <gtest/gtest.h>
#include <hwloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/id_list.h"
#include "support/descriptions.h"
#include "support/seed.h"

namespace numalign {
namespace {

using test::captured;
using test::described;
using test::fixture;
using test::refusal;
using test::synthetic;
using Source = DiscoverySource;

std::vector<int> column(const TopologySpec& spec, int CpuInfo::*member) {
  std::vector<int> values;
  for (const CpuInfo& cpu : spec.cpus) values.push_back(cpu.*member);
  return values;
}

using Ids = std::vector<int>;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

// What a piece of code writes to file descriptor 2.
class CapturedStderr {
 public:
  CapturedStderr() : saved_(dup(2)), file_(memfd_create("stderr", MFD_CLOEXEC)) { dup2(file_, 2); }
  ~CapturedStderr() {
    dup2(saved_, 2);
    close(saved_);
    close(file_);
  }
  off_t bytes() const { return lseek(file_, 0, SEEK_END); }

 private:
  int saved_, file_;
};

// ---- captured machines ----

TEST(HwlocDiscovery, ReadsACapturedMachineWithL3Ids) {
  TopologySpec spec = captured("2core.xml");
  EXPECT_EQ(spec.cpus, (std::vector<CpuInfo>{{0, 0, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0}}));
  ASSERT_EQ(spec.nodes.size(), 1u);
  EXPECT_EQ(spec.nodes[0].hugepages, (std::vector<HugepagePool>{{2097152, 0}, {1073741824, 0}}));
  EXPECT_TRUE(spec.nodes[0].distances.empty());
}

TEST(HwlocDiscovery, NamesCoresAndDiesByTheirLowestCpu) {
  TopologySpec spec = captured("2x2x2x2.xml");
  EXPECT_EQ(column(spec, &CpuInfo::core), (Ids{0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14}));
  EXPECT_EQ(column(spec, &CpuInfo::die), (Ids{0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12}));
  EXPECT_EQ(column(spec, &CpuInfo::node), (Ids{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(column(spec, &CpuInfo::l3), column(spec, &CpuInfo::node))
      << "logical indexes where no L3 has an id";
  EXPECT_EQ(column(spec, &CpuInfo::package), (Ids{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(HwlocDiscovery, ReadsEightNodes) {
  TopologySpec spec = captured("8node.xml");
  EXPECT_EQ(spec.cpus.size(), 32u);
  ASSERT_EQ(spec.nodes.size(), 8u);
  for (int i = 0; i < 32; i++) EXPECT_EQ(spec.cpus[i].node, i / 4);
  EXPECT_EQ(spec.nodes[7].memory_bytes, 512000000u);
}

TEST(HwlocDiscovery, KeepsTheIdsOfLinuxWithTheirHoles) {
  TopologySpec spec = captured("holes.xml");
  EXPECT_EQ(column(spec, &CpuInfo::cpu), (Ids{1, 2, 3, 4, 7, 9, 12, 20}));
  EXPECT_EQ(column(spec, &CpuInfo::core), (Ids{1, 2, 3, 4, 2, 1, 4, 3}));
  EXPECT_EQ(column(spec, &CpuInfo::die), (Ids{1, 2, 2, 1, 2, 1, 1, 2}));
  EXPECT_EQ(column(spec, &CpuInfo::node), (Ids{0, 3, 3, 0, 3, 0, 0, 3}));
  EXPECT_EQ(format_id_list(spec.possible), "1-4,7,9,12,20");
}

TEST(HwlocDiscovery, PutsCpusOnOrdinaryMemoryBesideAMemoryOnlyNode) {
  TopologySpec spec = captured("memory-only.xml");
  // Nodes 0 and 3 are HBM; on the first package it even has the lower id.
  EXPECT_EQ(column(spec, &CpuInfo::node), (Ids{1, 1, 2, 2}));
  ASSERT_EQ(spec.nodes.size(), 4u) << "nodes without CPUs are there too";
  EXPECT_EQ(spec.nodes[2].hugepages, (std::vector<HugepagePool>{{2097152, 64}, {1073741824, 0}}));
}

TEST(HwlocDiscovery, OrdersDistancesByNodeIdInRowsAndColumns) {
  TopologySpec spec = captured("memory-only.xml");  // listed as 1 0 2 3
  using Row = std::vector<uint32_t>;
  EXPECT_EQ(spec.nodes[0].distances, (Row{10, 12, 22, 32}));
  EXPECT_EQ(spec.nodes[1].distances, (Row{13, 10, 21, 31}));
  EXPECT_EQ(spec.nodes[2].distances, (Row{23, 20, 10, 14}));
  EXPECT_EQ(spec.nodes[3].distances, (Row{33, 30, 15, 10}));
}

TEST(HwlocDiscovery, TakesTheAllowedCpusOfACapture) {
  TopologySpec spec = captured("memory-only.xml");
  EXPECT_EQ(format_id_list(spec.possible), "0-3");
  EXPECT_EQ(format_id_list(spec.allowed), "0-2");
  EXPECT_TRUE(spec.isolated.empty());
}

TEST(HwlocDiscovery, RanksTheKindsOfCoresOfACapture) {
  std::string kinds = R"(  <cpukind cpuset="0x00000003">
    <info name="CoreType" value="IntelAtom"/>
    <info name="FrequencyMaxMHz" value="3800"/>
  </cpukind>
  <cpukind cpuset="0x0000000c" forced_efficiency="-1">
    <info name="CoreType" value="IntelCore"/>
  </cpukind>
</topology>)";
  std::string xml = fixture("memory-only.xml");
  TopologySpec spec = described(Source::kXml, replaced(xml, "</topology>", kinds));
  EXPECT_EQ(column(spec, &CpuInfo::kind), (Ids{0, 0, 1, 1}));
  EXPECT_EQ(column(described(Source::kXml, xml), &CpuInfo::kind), (Ids{0, 0, 0, 0}));
  std::string message = refusal(Source::kXml, replaced(xml, "</topology>", "<cpukind/></topology>"));
  EXPECT_NE(message.find("a cpukind has no cpuset"), message.npos) << message;
}

// ---- version 3 of the format ----

std::vector<Ids> columns(const TopologySpec& spec) {
  std::vector<Ids> all;
  for (int CpuInfo::*member : {&CpuInfo::cpu, &CpuInfo::core, &CpuInfo::package, &CpuInfo::die, &CpuInfo::l3,
                               &CpuInfo::node, &CpuInfo::kind}) {
    all.push_back(column(spec, member));
  }
  return all;
}

TEST(HwlocDiscovery, ReadsVersion3LikeVersion2ButForTheNumberOfHugepages) {
  TopologySpec older = captured("pci.xml"), newer = captured("pci-hwloc-3.xml");
  EXPECT_EQ(columns(newer), columns(older));
  auto by_id = [](std::vector<PciDevice> devices) {
    std::ranges::sort(devices, {}, &PciDevice::id);
    return devices;
  };
  EXPECT_EQ(by_id(newer.devices), by_id(older.devices));
  for (NodeInfo& node : older.nodes) {
    for (HugepagePool& pool : node.hugepages) pool.count = 0;
  }
  EXPECT_EQ(newer.nodes, older.nodes);
  std::string broken = replaced(fixture("pci-hwloc-3.xml"), "4096,2097152", "4096,2 MiB");
  EXPECT_NE(refusal(Source::kXml, broken).find("PageSizes"), broken.npos);
}

TEST(HwlocDiscovery, TakesDmaEnginesForNoDeviceOfAnyVersion) {
  std::string xml = fixture("pci.xml"), newer = fixture("pci-hwloc-3.xml");
  auto names = [](const std::string& text) {
    TopologySpec spec = described(Source::kXml, text);
    return std::ranges::find(spec.devices, "0000:41:00.0", &PciDevice::id)->names;
  };
  EXPECT_EQ(names(xml), std::vector<std::string>{"eth0"});
  EXPECT_EQ(names(replaced(xml, R"(osdev_type="2")", R"(osdev_type="4")")), std::vector<std::string>());
  EXPECT_EQ(names(newer), std::vector<std::string>{"eth0"});
  EXPECT_EQ(names(replaced(newer, R"(osdev_type="16")", R"(osdev_type="4")")),
            std::vector<std::string>{"eth0"});
  EXPECT_EQ(names(replaced(newer, R"(osdev_type="16")", R"(osdev_type="64")")), std::vector<std::string>());
}

// ---- what cannot be written as JSON and read again ----

TEST(HwlocDiscovery, RefusesMemoryThatJsonCannotDescribe) {
  EXPECT_NE(refusal(Source::kSynthetic, "numa:2(memory=8000000GB) core:2 pu:2").find("2^53"),
            std::string::npos);
  std::string xml = fixture("2core.xml");
  for (const char* size : {"2097153", "3145728"}) {
    std::string message =
        refusal(Source::kXml, replaced(xml, R"(size="2097152")", "size=\"" + std::string(size) + "\""));
    EXPECT_NE(message.find("powers of two"), message.npos) << size << ": " << message;
  }
}

// ---- PCI devices of captured machines ----

const PciDevice* find_device(const TopologySpec& spec, const std::string& id) {
  auto found = std::ranges::find(spec.devices, id, &PciDevice::id);
  return found == spec.devices.end() ? nullptr : &*found;
}

TEST(HwlocDiscovery, ReadsPciDevicesWithTheNodesOfTheirPlace) {
  TopologySpec spec = captured("pci.xml");
  std::vector<std::string> ids;
  for (const PciDevice& device : spec.devices) ids.push_back(device.id);
  std::ranges::sort(ids);
  EXPECT_EQ(ids, (std::vector<std::string>{"0000:00:03.0", "0000:00:04.0", "0000:00:05.0", "0000:00:1f.2",
                                           "0000:00:1f.3", "0000:41:00.0", "0000:42:00.0", "0000:81:00.0",
                                           "0000:82:00.0", "0000:82:00.1", "0000:82:00.2"}));
  EXPECT_EQ(*find_device(spec, "0000:41:00.0"),
            (PciDevice{"0000:41:00.0", 0x0200, 0x1af4, 0x1041, "", {"eth0"}, {1}, ""}));
  EXPECT_EQ(*find_device(spec, "0000:42:00.0"),
            (PciDevice{"0000:42:00.0", 0x0108, 0x1b36, 0x0010, "", {"nvme1n1"}, {1}, ""}));
  EXPECT_EQ(find_device(spec, "0000:81:00.0")->nodes, Ids{3});
  EXPECT_EQ(find_device(spec, "0000:82:00.2")->nodes, Ids{3});
  EXPECT_EQ(find_device(spec, "0000:00:1f.2")->nodes, Ids{}) << "near all of several nodes";
}

TEST(HwlocDiscovery, GivesDevicesOfAPackageAllItsNodes) {
  std::string xml = fixture("pci.xml");
  const std::string device =
      R"(<object type="PCIDev" pci_busid="10000:01:00.0" pci_type="0302 [10de:20b0]"/>)";
  xml = replaced(xml, R"(<object type="Die" os_index="0")", device + R"(<object type="Die" os_index="0")");
  EXPECT_EQ(find_device(described(Source::kXml, xml), "10000:01:00.0")->nodes, (Ids{0, 1}));
}

TEST(HwlocDiscovery, PutsDevicesOfAMachineOfOneNodeOnIt) {
  const std::string device =
      R"(<object type="PCIDev" pci_busid="0000:01:00.0" pci_type="0302 [10de:20b0]"/>)";
  std::string xml =
      replaced(fixture("2core.xml"), "<object type=\"Package\"", device + "<object type=\"Package\"");
  EXPECT_EQ(find_device(described(Source::kXml, xml), "0000:01:00.0")->nodes, Ids{0});
}

TEST(HwlocDiscovery, ReadsTheFirstOfTwoPciDevicesWithOneAddress) {
  const std::string xml = fixture("pci.xml");
  TopologySpec spec = described(Source::kXml, xml);
  TopologySpec twice = described(Source::kXml, replaced(xml, "0000:42:00.0", "0000:41:00.0"));
  EXPECT_EQ(twice.devices.size(), spec.devices.size() - 1);
  EXPECT_EQ(find_device(twice, "0000:41:00.0")->nodes, find_device(spec, "0000:41:00.0")->nodes);
}

TEST(HwlocDiscovery, RefusesPciDevicesThatMakeNoSense) {
  std::string xml = fixture("pci.xml");
  for (auto [from, to, why] : {std::array{"\"0000:41:00.0", "\"0:41:00.0", "0000:3b:00.0"},
                               std::array{"0000:41:00.0", "0000:41:00.9", "pci_busid"},
                               std::array{"0200 [1af4:1041]", "0200 [1af4:104]", "pci_type"},
                               std::array{"0200 [1af4:1041] [1af4:1100]", "", "pci_type"},
                               std::array{"0200 [1af4:1041]", "-200 [1af4:1041]", "pci_type"}}) {
    std::string message = refusal(Source::kXml, replaced(xml, from, to));
    EXPECT_NE(message.find(why), message.npos) << message;
    EXPECT_NE(message.find("line "), message.npos) << message;
  }
}

TEST(HwlocDiscovery, NumbersPackagesItselfWhereIdsRepeatOrAreUnknown) {
  std::string xml = fixture("8node.xml");
  std::string repeated = replaced(xml, R"("Package" os_index="3")", R"("Package" os_index="2")");
  EXPECT_EQ(column(described(Source::kXml, repeated), &CpuInfo::package)[12], 3);
  std::string unknown = replaced(xml, R"("Package" os_index="7")", R"("Package")");
  EXPECT_EQ(column(described(Source::kXml, unknown), &CpuInfo::package)[31], 7);
  std::string other = replaced(xml, R"("Package" os_index="7")", R"("Package" os_index="131072")");
  EXPECT_EQ(column(described(Source::kXml, other), &CpuInfo::package)[31], 131072);
}

TEST(HwlocDiscovery, GivesCpusWithoutL3AnIdThatNoL3Has) {
  // Packages 0 and 1 lose theirs; the levels become L2.
  std::string xml = fixture("2x2x2x2.xml");
  const std::string l3 = R"("L3Cache" cpuset="0x0000000f")";
  xml = replaced(xml, l3, replaced(l3, "L3", "L2"));
  const std::string third = R"("L3Cache" cpuset="0x00000f00")";
  xml = replaced(xml, third, replaced(third, "L3", "L2"));
  TopologySpec spec = described(Source::kXml, xml);
  EXPECT_EQ(column(spec, &CpuInfo::l3), (Ids{2, 2, 2, 2, 0, 0, 0, 0, 3, 3, 3, 3, 1, 1, 1, 1}));
}

TEST(HwlocDiscovery, GivesCpusWithoutALocalNodeTheNearestAncestorsOne) {
  std::string xml = fixture("holes.xml");
  size_t node = xml.find(R"(<object type="NUMANode" os_index="0")");
  xml.erase(node, xml.find("</object>", node) + 9 - node);
  TopologySpec spec = described(Source::kXml, xml);
  EXPECT_EQ(column(spec, &CpuInfo::node), Ids(8, 3));
  EXPECT_EQ(spec.nodes.size(), 1u);
}

TEST(HwlocDiscovery, SkipsCommentsAndWhatItDoesNotKnow) {
  std::string xml = fixture("holes.xml");
  xml = replaced(xml, "<object type=\"Package\"",
                 "<!-- first -->\n<info name=\"&lt;\" value=\"\"/><object type=\"Package\"");
  xml = replaced(xml, "</topology>", "<future><deep/>text</future></topology>");
  EXPECT_EQ(described(Source::kXml, xml).cpus, captured("holes.xml").cpus);
}

// ---- invented machines ----

TEST(HwlocDiscovery, ReadsSyntheticDescriptions) {
  TopologySpec spec = synthetic("package:2 [numa(memory=64GiB)] l3:2 core:8 pu:2");
  EXPECT_EQ(spec.cpus.size(), 64u);
  EXPECT_EQ(spec.cpus[63], (CpuInfo{63, 62, 1, 32, 3, 1}));
  EXPECT_EQ(format_id_list(spec.possible), "0-63");
  EXPECT_EQ(spec.allowed, spec.possible);
  EXPECT_TRUE(spec.isolated.empty());
  EXPECT_EQ(spec.nodes[1].memory_bytes, uint64_t{64} << 30);
  EXPECT_EQ(synthetic("numa:2 core:4 pu:2").nodes[1].memory_bytes, 0u);  // it says nothing
}

TEST(HwlocDiscovery, PlacesNodesAboveBelowAndBesideEveryLevel) {
  struct Case {
    const char* text;
    int nodes_with_cpus;
  };
  for (Case c :
       {Case{"pu:1", 1}, Case{"4 2", 4}, Case{"numa:2 package:2 core:2 pu:1", 2},
        Case{"package:2 numa:4 l3:2 core:8 pu:2", 8}, Case{"package:2 l3:2 [numa] core:2 pu:2", 4},
        Case{"package:2 group:2 [numa] core:2 pu:1", 4}, Case{"package:2 [numa] group:2 core:2 pu:1", 2},
        Case{"[numa] package:2 core:2 pu:1", 1}, Case{"package:2 [numa] [numa] core:2 pu:1", 2},
        Case{"group:2 group:2 group:2 [numa] pu:4", 8}, Case{"package:2 core:4 [numa] pu:2", 8}}) {
    TopologySpec spec = synthetic(c.text);
    Ids nodes = column(spec, &CpuInfo::node);
    EXPECT_EQ(std::set<int>(nodes.begin(), nodes.end()).size(), static_cast<size_t>(c.nodes_with_cpus))
        << c.text;
  }
}

// What lstopo writes of a synthetic machine.
std::string exported(const std::string& text) {
  hwloc_topology_t topology = nullptr;
  hwloc_topology_init(&topology);
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  EXPECT_EQ(hwloc_topology_set_synthetic(topology, text.c_str()), 0) << text;
  EXPECT_EQ(hwloc_topology_load(topology), 0) << text;
  char* xml = nullptr;
  int length = 0;
  EXPECT_EQ(hwloc_topology_export_xmlbuffer(topology, &xml, &length, 0), 0) << text;
  std::string result(xml);
  hwloc_free_xmlbuffer(topology, xml);
  hwloc_topology_destroy(topology);
  return result;
}

TEST(HwlocDiscovery, SeesTheSameMachineInASyntheticDescriptionAndInItsXml) {
  for (const char* text :
       {"core:2 pu:1", "package:2 [numa(memory=8GiB)] core:2 pu:2", "package:2 numa:2 l3:2 core:4 pu:2",
        "package:2 l2:4 [numa(memory=1GiB)] core:2 pu:2", "package:2 l3:2 [numa(memory=1GiB)] l2:2 l1:1 pu:4",
        "package:3 [numa(memory=2GiB)] [numa(memory=1GiB)] l3:2 core:2 pu:1",
        "group:2 [numa(memory=1GiB)] group:2 package:2 die:2 core:2 pu:1",
        "numa:4(memory=1GiB indexes=3,1,2,0) core:4 pu:2(indexes=2*16:1*2)"}) {
    TopologySpec one = synthetic(text);
    TopologySpec other = described(Source::kXml, exported(text));
    EXPECT_EQ(one.cpus, other.cpus) << text;
    EXPECT_EQ(one.allowed, other.allowed) << text;
    ASSERT_EQ(one.nodes.size(), other.nodes.size()) << text;
    for (size_t i = 0; i < one.nodes.size(); i++) {
      EXPECT_EQ(one.nodes[i].node, other.nodes[i].node) << text;
      if (std::string_view(text).find("memory=") != std::string_view::npos)
        EXPECT_EQ(one.nodes[i].memory_bytes, other.nodes[i].memory_bytes) << text;
    }
  }
}

TEST(HwlocDiscovery, PutsCpusOnTheNodesOfTheirL2) {
  std::vector<int> nodes = column(synthetic("package:2 l2:2 [numa] core:2 pu:1"), &CpuInfo::node);
  EXPECT_EQ(nodes, (Ids{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(HwlocDiscovery, UsesThePackageWhereThereIsNoL3AndZeroWhereThereIsNoPackage) {
  EXPECT_EQ(column(synthetic("package:2 core:2 pu:1"), &CpuInfo::l3), (Ids{0, 0, 1, 1}));
  EXPECT_EQ(column(synthetic("numa:2 core:2 pu:1"), &CpuInfo::package), (Ids{0, 0, 0, 0}));
  EXPECT_EQ(column(synthetic("numa:2 core:2 pu:1"), &CpuInfo::die), (Ids{0, 0, 0, 0}));
}

TEST(HwlocDiscovery, SplitsWhatContradictsItself) {
  // A core around two nodes, an L3 around two packages, a core around two L3s.
  EXPECT_EQ(column(synthetic("core:1 numa:2 pu:2"), &CpuInfo::core), (Ids{0, 0, 2, 2}));
  EXPECT_EQ(column(synthetic("l3:2 package:2 core:1 pu:1"), &CpuInfo::l3), (Ids{0, 3, 1, 4}));
  EXPECT_EQ(column(synthetic("core:1 l3:2 pu:2"), &CpuInfo::core), (Ids{0, 0, 2, 2}));
}

TEST(HwlocDiscovery, FollowsSyntheticIndexes) {
  TopologySpec spec = synthetic("package:2 core:2 pu:2(indexes=0,40,1,41,2,42,3,43)");
  EXPECT_EQ(column(spec, &CpuInfo::cpu), (Ids{0, 1, 2, 3, 40, 41, 42, 43}));
  EXPECT_EQ(column(spec, &CpuInfo::core), (Ids{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(column(synthetic("core:2 pu:2(indexes=2*2:1*2)"), &CpuInfo::core), (Ids{0, 1, 0, 1}));
  EXPECT_EQ(column(synthetic("package:2 core:2 pu:1(indexes=package:core)"), &CpuInfo::package),
            (Ids{0, 1, 0, 1}));
}

// ---- texts that are no machine ----

TEST(HwlocDiscovery, RefusesMalformedSyntheticDescriptionsWithAnExample) {
  CapturedStderr quiet;
  for (std::string text : {std::string(),
                           std::string("  "),
                           std::string("x"),
                           std::string("package:2"),
                           std::string("pu:0"),
                           std::string("pu:-1"),
                           std::string("pu:4 core:2"),
                           std::string("package:2 [numa core:2 pu:1"),
                           std::string("pu:2(indexes=0,0)"),
                           std::string("pu:2(indexes=0,4000000000)"),
                           std::string("core:2 pu:2(indexes=2*2:1*7)"),
                           std::string("pu:1000000000"),
                           std::string("pu:0x40000000"),
                           std::string("core:2pu:99999999"),
                           std::string("package:90 core:90 pu:2"),
                           std::string("pu:99999999999999999999"),
                           std::string("pu:2\0", 5),
                           std::string("package\xe0:2 numa:2"),
                           std::string("\x01\xff"),
                           std::string(100000, '('),
                           std::string(5000, '2')}) {
    std::string message = refusal(Source::kSynthetic, text);
    EXPECT_NE(message.find("package:2 [numa(memory=64GB)] l3:2 core:8 pu:2"), message.npos)
        << text.substr(0, 40);
    EXPECT_LT(message.size(), 500u);
  }
  EXPECT_EQ(quiet.bytes(), 0);
}

TEST(HwlocDiscovery, RefusesIdsBeyondItsSets) {
  EXPECT_NE(refusal(Source::kSynthetic, "package:2 numa:1000 pu:1").find("NUMA node id 1024"),
            std::string::npos);
  std::string xml = fixture("holes.xml");
  std::string words = "0x1";
  for (int i = 0; i < 3000; i++) words += ",0x0";
  EXPECT_NE(refusal(Source::kXml, replaced(xml, "0x0010129e", words)), "");
  EXPECT_NE(refusal(Source::kXml, replaced(xml, "0x0010129e", "0xf...f")), "");
}

TEST(HwlocDiscovery, RefusesEveryTruncationOfADocument) {
  CapturedStderr quiet;
  for (const char* name : {"2core.xml", "memory-only.xml"}) {
    std::string xml = fixture(name);
    size_t whole = xml.find_last_not_of('\n') + 1;
    for (size_t length = 0; length < whole; length++) {
      EXPECT_NE(refusal(Source::kXml, xml.substr(0, length)), "") << name << " cut after " << length;
    }
    described(Source::kXml, xml.substr(0, whole));
  }
  EXPECT_EQ(quiet.bytes(), 0);
}

TEST(HwlocDiscovery, NamesTheLineThatIsWrong) {
  std::string xml = fixture("holes.xml");
  std::string message = refusal(Source::kXml, replaced(xml, R"("PU" os_index="9")", R"("PU" os_index="8")"));
  EXPECT_NE(message.find("line 12"), message.npos) << message;
  EXPECT_NE(message.find("PU"), message.npos) << message;
}

TEST(HwlocDiscovery, RefusesDocumentsThatContradictThemselves) {
  CapturedStderr quiet;
  std::string xml = fixture("holes.xml");
  const std::string pu = R"(<object type="PU" os_index="1" cpuset="0x00000002")";
  const std::string core = R"(<object type="Core" os_index="0" cpuset="0x00000202")";
  EXPECT_NE(refusal(Source::kXml, replaced(xml, pu, replaced(pu, "0x00000002", "0x00000004"))), "");
  EXPECT_NE(refusal(Source::kXml, replaced(xml, pu, replaced(pu, R"(os_index="1")", ""))), "");
  EXPECT_NE(refusal(Source::kXml, replaced(xml, core, replaced(core, "0x00000202", "0x00000302"))), "");
  EXPECT_NE(refusal(Source::kXml, replaced(xml, core, replaced(core, "0x00000202", "0x00000002"))), "");
  EXPECT_NE(refusal(Source::kXml, replaced(xml, R"(<topology version="2.0">)", "<topology>")), "");
  EXPECT_NE(
      refusal(Source::kXml, replaced(xml, R"(<topology version="2.0">)", R"(<topology version="4.0">)")), "");
  std::string distances = fixture("memory-only.xml");
  EXPECT_NE(refusal(Source::kXml, replaced(distances, "1 0 2 3 <", "1 0 2 2 <")), "");
  EXPECT_NE(refusal(Source::kXml, replaced(distances, "12 10 22", "12 22")), "");
  EXPECT_NE(refusal(Source::kXml, replaced(distances, R"(nbobjs="4")", R"(nbobjs="4000000000")")), "");
  EXPECT_EQ(quiet.bytes(), 0);
}

TEST(HwlocDiscovery, RefusesWhatIsNoXmlOfAMachine) {
  CapturedStderr quiet;
  std::string deep;
  for (int i = 0; i < 200000; i++) deep += "<object type=\"Machine\" cpuset=\"0x1\" nodeset=\"0x1\">";
  std::string comments = "<topology version=\"2.0\">";
  for (int i = 0; i < 200000; i++) comments += "<!---->";
  const std::string bomb =
      "<?xml version=\"1.0\"?><!DOCTYPE topology [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>"
      "<topology version=\"2.0\"><object type=\"&b;\"/></topology>";
  for (const std::string& text :
       {std::string(), std::string("garbage"), std::string("/etc/topology.xml"), std::string("<topology/>"),
        std::string("<topology version=\"2.0\"/>"), std::string("<html></html>"),
        std::string("\x7f"
                    "ELF\x02\x01\x01\0\0",
                    9),
        fixture("holes.xml") + fixture("holes.xml"), fixture("holes.xml") + "x",
        fixture("holes.xml") + std::string(1, '\0'), std::string(1000, '<'), std::string(1000, '&'),
        std::string("<topology version=\"2.0\"><object"), deep, comments, bomb,
        std::string(100 << 20, ' ')}) {
    EXPECT_NE(refusal(Source::kXml, text), "") << text.substr(0, 60);
  }
  EXPECT_EQ(quiet.bytes(), 0);
}

TEST(HwlocDiscovery, NeverTakesADamagedByteForAContradiction) {
  CapturedStderr quiet;
  std::string xml = fixture("2core.xml");
  // By default every fifth byte, other ones in each run.
  const size_t stride = 5 / test::rounds(5);
  for (size_t i = test::seed() % stride; i < xml.size(); i += stride) {
    for (char c : {'\0', '"', '<', '>', '0', '7', 'f', 'A', '\xe0'}) {
      std::string damaged = xml;
      damaged[i] = c;
      Result<TopologySpec> spec = discover(Source::kXml, damaged);
      if (spec.ok()) {
        EXPECT_TRUE(Topology::create(spec.value()).ok()) << "byte " << i;
      }
    }
  }
  EXPECT_EQ(quiet.bytes(), 0);
}

}  // namespace
}  // namespace numalign
