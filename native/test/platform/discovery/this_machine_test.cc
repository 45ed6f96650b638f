// What discovery says of the machine it runs on.
#include <gtest/gtest.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/id_list.h"
#include "platform/discovery/hwloc_discovery.h"
#include "platform/discovery/machine_file.h"
#include "platform/discovery/pci_devices.h"
#include "support/descriptions.h"

namespace numalign {
namespace {

using test::captured;
using test::described;
using test::read_file;
using test::refusal;
using test::synthetic;
using Source = DiscoverySource;

TEST(ThisMachine, SeesEveryOnlineCpuOfThisMachine) {
  TopologySpec spec = described(Source::kMachine, "");
  std::string online = read_file("/sys/devices/system/cpu/online");
  std::string possible = read_file("/sys/devices/system/cpu/possible");
  CpuSet cpus;
  for (const CpuInfo& cpu : spec.cpus) cpus.insert(cpu.cpu);
  EXPECT_EQ(format_id_list(cpus) + "\n", online);
  EXPECT_EQ(format_id_list(spec.possible) + "\n", possible);
  EXPECT_EQ(format_id_list(spec.isolated) + "\n", read_file("/sys/devices/system/cpu/isolated"));
  EXPECT_TRUE(spec.allowed.is_subset_of(cpus));
  EXPECT_FALSE(spec.allowed.empty());
}

TEST(ThisMachine, IsTheSameFromTheFileThatTheFirstDiscoveryKept) {
  const TopologySpec first = described(Source::kBareMachine, "");
  const std::optional<std::string> mark = machine_mark(reinterpret_cast<const void*>(&hwloc_topology_load));
  if (geteuid() != 0 || !mark) GTEST_SKIP() << "only root can keep what Linux says of a machine";
  const std::optional<MachineParts> kept = read_machine_file(kMachineFile, *mark);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->cpus, first.cpus);
  const TopologySpec second = described(Source::kBareMachine, "");
  EXPECT_EQ(second.cpus, first.cpus);
  EXPECT_EQ(second.nodes, first.nodes);
  EXPECT_EQ(second.possible, first.possible);
  EXPECT_EQ(second.allowed, first.allowed);
}

TEST(ThisMachine, SeesTheWholeMachineUnderARestrictedMask) {
  TopologySpec before = described(Source::kMachine, "");
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(before.allowed.last(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    TopologySpec under = described(Source::kMachine, "");
    EXPECT_EQ(under.cpus, before.cpus);
    EXPECT_EQ(under.possible, before.possible);
    EXPECT_EQ(under.allowed, before.allowed) << "the mask is not the cpuset";
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&one, &after)) << "discovery leaves the caller's mask alone";
  }).join();
}

std::string hugepage_file(int node, const HugepagePool& pool) {
  return "/sys/devices/system/node/node" + std::to_string(node) + "/hugepages/hugepages-" +
         std::to_string(pool.page_bytes / 1024) + "kB/nr_hugepages";
}

// The counts of hugepages by the files that tell them.
std::map<std::string, std::string> hugepage_counts(const TopologySpec& spec) {
  std::map<std::string, std::string> counts;
  for (const NodeInfo& node : spec.nodes) {
    for (const HugepagePool& pool : node.hugepages) {
      std::string file = hugepage_file(node.node, pool);
      counts[file] = read_file(file);
    }
  }
  return counts;
}

TEST(ThisMachine, SaysOfNodesWhatLinuxSays) {
  // Another process may reserve hugepages meanwhile: then they cannot be compared.
  const auto before = hugepage_counts(described(Source::kMachine, ""));
  TopologySpec spec = described(Source::kMachine, "");
  const auto after = hugepage_counts(spec);
  for (const NodeInfo& node : spec.nodes) {
    std::string folder = "/sys/devices/system/node/node" + std::to_string(node.node) + "/";
    std::string cpulist = read_file(folder + "cpulist");
    if (cpulist.empty()) GTEST_SKIP() << "a kernel without NUMA nodes";
    CpuSet cpus;
    for (const CpuInfo& cpu : spec.cpus) {
      if (cpu.node == node.node) cpus.insert(cpu.cpu);
    }
    EXPECT_EQ(format_id_list(cpus) + "\n", cpulist);
    ASSERT_EQ(node.distances.size(), spec.nodes.size());
    std::string distances;
    for (uint32_t distance : node.distances)
      distances += (distances.empty() ? "" : " ") + std::to_string(distance);
    EXPECT_EQ(distances + "\n", read_file(folder + "distance"));
    // Memory can be plugged in between the two readings; it stays in the same order of size. 0 is a node
    // without any.
    std::string meminfo = read_file(folder + "meminfo");
    uint64_t total = std::strtoull(meminfo.c_str() + meminfo.find("MemTotal:") + 9, nullptr, 10) * 1024;
    EXPECT_GE(node.memory_bytes, total / 2);
    EXPECT_LE(node.memory_bytes, total * 2);
    for (const HugepagePool& pool : node.hugepages) {
      std::string file = hugepage_file(node.node, pool);
      if (before.at(file) != after.at(file)) continue;
      EXPECT_EQ(std::to_string(pool.count) + "\n", after.at(file));
    }
  }
}

TEST(ThisMachine, SeesThePciDevicesOfThisMachineOnNodesThatItHas) {
  std::vector<PciDevice> listed = read_pci_devices("/sys");
  TopologySpec spec = described(Source::kMachine, "");
  ASSERT_EQ(spec.devices.size(), listed.size());
  for (size_t i = 0; i < listed.size(); i++) EXPECT_EQ(spec.devices[i].id, listed[i].id);
}

TEST(ThisMachine, CanRunOnSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([i] {
      for (int round = 0; round < 5; round++) {
        if (i % 2 == 0) {
          EXPECT_EQ(synthetic("package:2 core:2 pu:2").cpus.size(), 8u);
          EXPECT_NE(refusal(Source::kXml, "<topology"), "");
        } else {
          EXPECT_EQ(captured("holes.xml").cpus.size(), 8u);
          EXPECT_FALSE(described(Source::kMachine, "").cpus.empty());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// What discovery says while these variables are in the environment; empty if it reads the machine.
std::string refusal_with(const std::vector<std::pair<const char*, const char*>>& variables) {
  for (auto [name, value] : variables) setenv(name, value, 1);
  Result<TopologySpec> spec = discover(Source::kMachine, "");
  for (auto [name, value] : variables) unsetenv(name);
  return spec.ok() ? "" : spec.error().message;
}

TEST(ThisMachine, RefusesAnEnvironmentThatCanReplaceThisMachine) {
  for (const char* name : {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE", "HWLOC_COMPONENTS", "HWLOC_FSROOT",
                           "HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "HWLOC_OF_NEWER_VERSIONS"}) {
    std::string message = refusal_with({{name, "linux,stop"}, {"HWLOC_THISSYSTEM", "1"}});
    EXPECT_NE(message.find("unset HWLOC_"), message.npos) << name << ": " << message;
    EXPECT_NE(refusal_with({{name, ""}}).find(std::string("unset ") + name + ","), message.npos) << name;
  }
}

TEST(ThisMachine, ReadsVariablesOfHwlocThatChangeNothingHere) {
  EXPECT_EQ(refusal_with({{"HWLOC_HIDE_ERRORS", "2"},
                          {"HWLOC_PCI_0000_00_LOCALCPUS", "0x1"},
                          {"HWLOC_XML_VERBOSE", "0"},
                          {"HWLOC_GROUPING", "0"}}),
            "");
}

}  // namespace
}  // namespace numalign
