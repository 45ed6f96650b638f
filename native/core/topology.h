// Topology: the parts of a machine, as an immutable value in flat arrays. Ids are those of Linux;
// gaps, uneven sizes, NUMA nodes without CPUs or without memory are all normal. Thread-safety:
// immutable after create(); share it freely between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/id_set.h"
#include "core/result.h"

namespace numalign {

// One online CPU (hardware thread), and what contains it.
struct CpuInfo {
  int cpu;      // as in /sys/devices/system/cpu/cpuN
  int core;     // unique on the machine: the lowest CPU id of the core
  int package;  // physical package (socket) id
  int die;      // unique on the machine: the lowest CPU id of the die
  int l3;       // id of the L3 cache; of the package if the machine reports no L3
  int node;     // NUMA node id
  // Rank of its kind of core by performance: 0 is the slowest kind of the machine. create() closes
  // gaps.
  int kind = 0;

  friend bool operator==(const CpuInfo&, const CpuInfo&) = default;
};

// Pages of one size on one NUMA node, as configured when the topology was loaded.
struct HugepagePool {
  uint64_t page_bytes;
  uint64_t count;

  friend bool operator==(const HugepagePool&, const HugepagePool&) = default;
};

struct NodeInfo {
  int node;
  uint64_t memory_bytes;                // total, with hugepages; 0 if unknown or none
  std::vector<HugepagePool> hugepages;  // ascending page size
  std::vector<uint32_t> distances;      // to each node by ascending id; empty if unknown

  friend bool operator==(const NodeInfo&, const NodeInfo&) = default;
};

// A PCI function other than a bridge.
struct PciDevice {
  std::string id{};           // its address, see is_pci_address()
  uint16_t device_class = 0;  // base class and subclass: 0x0200 is Ethernet
  uint16_t vendor = 0;
  uint16_t device = 0;
  std::string driver{};              // empty: none, or unknown
  std::vector<std::string> names{};  // names of its Linux devices: "eth0", "nvme0n1", "card0"
  std::vector<int> nodes{};          // the NUMA nodes near it, ascending; empty: unknown
  std::string parent{};              // id of an SR-IOV virtual function's physical function; else empty

  friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

// True for "0000:3b:00.0": domain (four to eight digits), bus, device and function, in small
// letters, as Linux writes it.
bool is_pci_address(std::string_view text);

struct TopologySpec {
  std::vector<CpuInfo> cpus;       // the whole online machine
  std::vector<NodeInfo> nodes;     // every NUMA node, even without CPUs
  std::vector<PciDevice> devices;  // without bridges
  CpuSet possible;                 // ids that could ever be CPUs of this machine
  CpuSet isolated;                 // isolcpus= or an isolated partition at load time
  CpuSet allowed;                  // what the loading process may run on; all CPUs if that has no meaning
  bool has_devices = true;         // false: `devices` is empty because they have not been read
};

// The elements of one kind, for example cores: ids ascending, each with its CPUs as a sparse
// bitmap, so that counting an element's free CPUs is a popcount over one or two words.
class Level {
 public:
  struct WordMask {
    uint32_t word;
    uint64_t mask;
  };

  int count() const { return static_cast<int>(ids_.size()); }
  int id(int element) const { return ids_[element]; }
  int size(int element) const { return sizes_[element]; }  // CPUs, free or not
  std::span<const WordMask> masks(int element) const {
    return {masks_.data() + offsets_[element], masks_.data() + offsets_[element + 1]};
  }
  int free_in(int element, std::span<const uint64_t> free) const {
    int n = 0;
    for (const WordMask& m : masks(element)) n += count_ones(free[m.word] & m.mask);
    return n;
  }
  // The common size of all elements, or 0 if they differ.
  int uniform_size() const { return uniform_size_; }
  int least_size() const { return least_size_; }

 private:
  friend class Topology;
  // `members[i]`: the element id of cpus[i].
  Level(std::span<const CpuInfo> cpus, int CpuInfo::*member);

  std::vector<int> ids_;
  std::vector<int> sizes_;
  std::vector<int> offsets_;
  std::vector<WordMask> masks_;
  int uniform_size_ = 0;
  int least_size_ = 0;
};

class Topology {
 public:
  // Checks and indexes a description. kInvalidTopology: no CPU, an id that is negative, too large
  // or repeated, a CPU or device on an unknown node, a core or L3 that spans packages, a core that
  // spans nodes or kinds, distances of the wrong length, a device id that is not a PCI address.
  static Result<std::shared_ptr<const Topology>> create(TopologySpec spec);

  const TopologySpec& spec() const { return spec_; }
  const CpuSet& cpus() const { return cpus_; }
  // The words that a bitmap of this machine's CPUs needs.
  size_t words() const { return cpus_.words().size(); }

  const Level& cores() const { return cores_; }
  const Level& l3_groups() const { return l3_groups_; }
  const Level& packages() const { return packages_; }
  const Level& nodes() const { return nodes_; }  // NUMA nodes with CPUs

  // Elements of one level inside an element of another, ascending, for example the cores of a
  // package.
  using Members = std::vector<std::vector<int>>;
  const Members& cores_of_package() const { return cores_of_package_; }
  const Members& cores_of_node() const { return cores_of_node_; }
  const Members& l3_groups_of_node() const { return l3_groups_of_node_; }
  const Members& cores_of_l3() const { return cores_of_l3_; }
  const Members& nodes_of_package() const { return nodes_of_package_; }
  const Members& packages_of_node() const { return packages_of_node_; }

 private:
  explicit Topology(TopologySpec spec);

  TopologySpec spec_;
  CpuSet cpus_;
  Level cores_, l3_groups_, packages_, nodes_;
  Members cores_of_package_, cores_of_node_, l3_groups_of_node_, cores_of_l3_, nodes_of_package_,
      packages_of_node_;
};

}  // namespace numalign
