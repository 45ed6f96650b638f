#include "core/topology.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace numalign {
namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalidTopology, std::move(message)}; }

std::string cpu_name(const CpuInfo& cpu) { return "CPU " + std::to_string(cpu.cpu); }

// Fails if CPUs that share `inner` disagree on `outer`, for example a core in two packages.
std::optional<Error> check_nesting(std::span<const CpuInfo> cpus, int CpuInfo::*inner, const char* inner_name,
                                   int CpuInfo::*outer, const char* outer_name) {
  std::map<int, const CpuInfo*> first_of;
  for (const CpuInfo& cpu : cpus) {
    const CpuInfo* first = first_of.try_emplace(cpu.*inner, &cpu).first->second;
    if (first->*outer == cpu.*outer) continue;
    return invalid(std::string(inner_name) + " " + std::to_string(cpu.*inner) + " spans " + outer_name + " " +
                   std::to_string(first->*outer) + " (" + cpu_name(*first) + ") and " +
                   std::to_string(cpu.*outer) + " (" + cpu_name(cpu) + ")");
  }
  return std::nullopt;
}

std::optional<Error> check_nodes(std::span<const NodeInfo> nodes) {
  for (size_t i = 0; i < nodes.size(); i++) {
    const NodeInfo& node = nodes[i];
    std::string name = "NUMA node " + std::to_string(node.node);
    if (node.node < 0 || node.node > NodeSet::kMaxId) {
      return invalid(name + ": ids go from 0 to " + std::to_string(NodeSet::kMaxId));
    }
    if (i > 0 && nodes[i - 1].node == node.node) return invalid(name + " is given twice");
    if (!node.distances.empty() && node.distances.size() != nodes.size()) {
      return invalid(name + " has " + std::to_string(node.distances.size()) + " distances for " +
                     std::to_string(nodes.size()) + " nodes");
    }
  }
  return std::nullopt;
}

std::optional<Error> check_memory(std::span<const NodeInfo> nodes) {
  std::optional<std::string> what = memory_error(nodes);
  return what ? std::optional(invalid(*what)) : std::nullopt;
}

std::optional<Error> check_cpus(std::span<const CpuInfo> cpus, std::span<const NodeInfo> nodes) {
  if (cpus.empty()) return invalid("a machine needs at least one CPU");
  for (size_t i = 0; i < cpus.size(); i++) {
    const CpuInfo& cpu = cpus[i];
    if (cpu.cpu < 0 || cpu.cpu > CpuSet::kMaxId) {
      return invalid(cpu_name(cpu) + ": ids go from 0 to " + std::to_string(CpuSet::kMaxId));
    }
    if (i > 0 && cpus[i - 1].cpu == cpu.cpu) return invalid(cpu_name(cpu) + " is given twice");
    for (int id : {cpu.core, cpu.package, cpu.die, cpu.l3, cpu.node, cpu.kind}) {
      if (id < 0)
        return invalid(cpu_name(cpu) + " belongs to something with the negative id " + std::to_string(id));
    }
    if (std::ranges::find(nodes, cpu.node, &NodeInfo::node) == nodes.end()) {
      return invalid(cpu_name(cpu) + " is on NUMA node " + std::to_string(cpu.node) +
                     ", which is not described");
    }
  }
  for (auto error : {check_nesting(cpus, &CpuInfo::core, "core", &CpuInfo::package, "packages"),
                     check_nesting(cpus, &CpuInfo::core, "core", &CpuInfo::node, "NUMA nodes"),
                     check_nesting(cpus, &CpuInfo::core, "core", &CpuInfo::l3, "L3 groups"),
                     check_nesting(cpus, &CpuInfo::core, "core", &CpuInfo::kind, "kinds"),
                     check_nesting(cpus, &CpuInfo::l3, "L3 group", &CpuInfo::package, "packages")}) {
    if (error) return error;
  }
  return std::nullopt;
}

std::optional<Error> check_devices(std::span<const PciDevice> devices, std::span<const NodeInfo> nodes) {
  for (size_t i = 0; i < devices.size(); i++) {
    const PciDevice& device = devices[i];
    for (const std::string* id : {&device.id, &device.parent}) {
      if (is_pci_address(*id) || (id == &device.parent && id->empty())) continue;
      return invalid("PCI device \"" + device.id + "\": \"" + *id + "\" is not an address like 0000:3b:00.0");
    }
    if (i > 0 && devices[i - 1].id == device.id)
      return invalid("PCI device " + device.id + " is given twice");
    if (device.parent == device.id) return invalid("PCI device " + device.id + " is its own parent");
    for (int node : device.nodes) {
      if (std::ranges::find(nodes, node, &NodeInfo::node) != nodes.end()) continue;
      return invalid("PCI device " + device.id + " is near NUMA node " + std::to_string(node) +
                     ", which is not described");
    }
  }
  return std::nullopt;
}

// Kinds of a part of a machine have gaps.
void number_kinds(std::span<CpuInfo> cpus) {
  std::set<int> kinds;
  for (const CpuInfo& cpu : cpus) kinds.insert(cpu.kind);
  for (CpuInfo& cpu : cpus) {
    if (cpu.kind >= 0) cpu.kind = static_cast<int>(std::distance(kinds.begin(), kinds.find(cpu.kind)));
  }
}

void name_ordinary_memory(TopologySpec& spec) {
  for (const CpuInfo& cpu : spec.cpus) {
    NodeInfo& node = *std::ranges::find(spec.nodes, cpu.node, &NodeInfo::node);
    if (node.tier == MemoryTier::kOther) node.tier = MemoryTier::kDram;
  }
}

int position(const Level& level, int id) {
  int low = 0;
  for (int high = level.count(); low < high;) {
    int middle = (low + high) / 2;
    if (level.id(middle) < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Topology::Members members_of(std::span<const CpuInfo> cpus, const Level& outer, int CpuInfo::*outer_member,
                             const Level& inner, int CpuInfo::*inner_member) {
  Topology::Members members(outer.count());
  for (const CpuInfo& cpu : cpus) {
    members[position(outer, cpu.*outer_member)].push_back(position(inner, cpu.*inner_member));
  }
  for (auto& list : members) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return members;
}

}  // namespace

std::optional<std::string> memory_error(std::span<const NodeInfo> nodes) {
  constexpr uint64_t kLeastPage = 1024, kMost = (uint64_t{1} << 53) - 1;
  uint64_t left = kMost;
  auto take = [&](uint64_t size, uint64_t count) {
    if (size != 0 && count > left / size) return false;
    left -= size * count;
    return true;
  };
  for (const NodeInfo& node : nodes) {
    std::set<uint64_t> sizes;
    bool fits = take(node.memory_bytes, 1);
    for (const HugepagePool& pool : node.hugepages) {
      bool is_size = std::has_single_bit(pool.page_bytes) && pool.page_bytes >= kLeastPage;
      if (!is_size || !sizes.insert(pool.page_bytes).second) {
        return "NUMA node " + std::to_string(node.node) + " has pages of " + std::to_string(pool.page_bytes) +
               " bytes: sizes are powers of two from 1024, each once";
      }
      fits = fits && take(pool.page_bytes, pool.count);
    }
    if (!fits) return "the memory of all nodes together is above 2^53 - 1 bytes";
  }
  return std::nullopt;
}

bool is_pci_address(std::string_view text) {
  constexpr std::string_view kAfterDomain = ":xx:xx.";  // followed by the function
  if (text.size() < 12 || text.size() > 16) return false;
  size_t domain = text.size() - kAfterDomain.size() - 1;
  auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  for (size_t i = 0; i < text.size() - 1; i++) {
    char expected = i < domain ? 'x' : kAfterDomain[i - domain];
    if (expected == 'x' ? !is_hex(text[i]) : text[i] != expected) return false;
  }
  return text.back() >= '0' && text.back() <= '7';
}

Level::Level(std::span<const CpuInfo> cpus, int CpuInfo::*member) {
  std::map<int, CpuSet> sets;
  for (const CpuInfo& cpu : cpus) sets[cpu.*member].insert(cpu.cpu);
  offsets_.push_back(0);
  for (const auto& [id, set] : sets) {
    ids_.push_back(id);
    sizes_.push_back(set.size());
    std::span<const uint64_t> words = set.words();
    for (size_t i = 0; i < words.size(); i++) {
      if (words[i] != 0) masks_.push_back({static_cast<uint32_t>(i), words[i]});
    }
    offsets_.push_back(static_cast<int>(masks_.size()));
  }
  bool uniform = std::ranges::all_of(sizes_, [&](int size) { return size == sizes_[0]; });
  uniform_size_ = uniform ? sizes_[0] : 0;
  least_size_ = *std::ranges::min_element(sizes_);
}

Topology::Topology(TopologySpec spec)
    : spec_(std::move(spec)),
      cores_(spec_.cpus, &CpuInfo::core),
      l3_groups_(spec_.cpus, &CpuInfo::l3),
      packages_(spec_.cpus, &CpuInfo::package),
      nodes_(spec_.cpus, &CpuInfo::node) {
  for (const CpuInfo& cpu : spec_.cpus) cpus_.insert(cpu.cpu);
  auto members = [&](const Level& outer, int CpuInfo::*outer_member, const Level& inner,
                     int CpuInfo::*inner_member) {
    return members_of(spec_.cpus, outer, outer_member, inner, inner_member);
  };
  cores_of_package_ = members(packages_, &CpuInfo::package, cores_, &CpuInfo::core);
  cores_of_node_ = members(nodes_, &CpuInfo::node, cores_, &CpuInfo::core);
  l3_groups_of_node_ = members(nodes_, &CpuInfo::node, l3_groups_, &CpuInfo::l3);
  cores_of_l3_ = members(l3_groups_, &CpuInfo::l3, cores_, &CpuInfo::core);
  nodes_of_package_ = members(packages_, &CpuInfo::package, nodes_, &CpuInfo::node);
  packages_of_node_ = members(nodes_, &CpuInfo::node, packages_, &CpuInfo::package);
}

Result<std::shared_ptr<const Topology>> Topology::create(TopologySpec spec) {
  std::ranges::sort(spec.cpus, {}, &CpuInfo::cpu);
  number_kinds(spec.cpus);
  // Distances are listed by ascending node id already; only the rows may come in another order.
  std::ranges::sort(spec.nodes, {}, &NodeInfo::node);
  if (auto error = check_nodes(spec.nodes)) return *error;
  if (auto error = check_memory(spec.nodes)) return *error;
  if (auto error = check_cpus(spec.cpus, spec.nodes)) return *error;
  name_ordinary_memory(spec);
  std::ranges::sort(spec.devices, {}, &PciDevice::id);
  for (PciDevice& device : spec.devices) {
    std::ranges::sort(device.nodes);
    device.nodes.erase(std::unique(device.nodes.begin(), device.nodes.end()), device.nodes.end());
  }
  if (auto error = check_devices(spec.devices, spec.nodes)) return *error;
  for (NodeInfo& node : spec.nodes) std::ranges::sort(node.hugepages, {}, &HugepagePool::page_bytes);
  return std::shared_ptr<const Topology>(new Topology(std::move(spec)));
}

}  // namespace numalign
