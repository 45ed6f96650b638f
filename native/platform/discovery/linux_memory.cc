#include "platform/discovery/linux_memory.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "core/id_list.h"
#include "platform/discovery/sysfs.h"

namespace numalign {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNodes = "/sys/devices/system/node/";

std::vector<fs::path> entries_of(const char* folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  return entries;
}

std::optional<int> parse_id(std::string_view text) {
  int id = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), id);
  bool is_id = code == std::errc() && end == text.data() + text.size() && id >= 0 && id <= NodeSet::kMaxId;
  return is_id ? std::optional(id) : std::nullopt;
}

NodeSet parse_nodes(const std::optional<std::string>& list) {
  if (!list) return {};
  Result<NodeSet> nodes = parse_id_list<NodeTag>(*list);
  return nodes.ok() ? nodes.value() : NodeSet();
}

std::string folder_of(int node) { return kNodes + ("node" + std::to_string(node)) + "/"; }

// The number behind a word in lines like "Node 80 MemTotal:  97512960 kB"; 0 without one.
uint64_t number_after(const std::string& path, std::string_view word) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    size_t at = line.find(word);
    if (at != line.npos) return std::strtoull(line.c_str() + at + word.size(), nullptr, 10);
  }
  return 0;
}

std::vector<uint32_t> read_distances(int node) {
  std::vector<uint32_t> distances;
  std::istringstream line(read_first_line(folder_of(node) + "distance").value_or(""));
  for (uint32_t distance; line >> distance;) distances.push_back(distance);
  return distances;
}

// As the CPUs nearest to the node see it.
void add_performance(MemoryFacts& of) {
  std::string initiators = folder_of(of.node) + "access0/initiators/";
  of.note("Bandwidth", read_first_line(initiators + "read_bandwidth").value_or(""));
  of.note("Latency", read_first_line(initiators + "read_latency").value_or(""));
}

MemoryFacts* facts_of(std::vector<MemoryFacts>& facts, std::optional<int> node) {
  auto found = std::ranges::find_if(facts, [&](const MemoryFacts& of) { return of.node == node; });
  return found == facts.end() ? nullptr : &*found;
}

// Memory that a DAX device has given to the kernel: its place in /sys says what it is.
void add_dax_devices(std::vector<MemoryFacts>& facts) {
  for (const fs::path& device : entries_of("/sys/bus/dax/devices")) {
    std::optional<std::string> target = read_first_line(device / "target_node");
    MemoryFacts* of = target ? facts_of(facts, parse_id(*target)) : nullptr;
    std::error_code error;
    std::string place = fs::canonical(device, error).string();
    if (of == nullptr || error) continue;
    if (place.find("/ndbus") != place.npos) of->named = MemoryTier::kPmem;
    if (place.find("/dax_region") != place.npos) of->named = MemoryTier::kCxl;
  }
}

void add_ranks(std::vector<MemoryFacts>& facts) {
  constexpr std::string_view kTier = "memory_tier";
  for (const fs::path& tier : entries_of("/sys/devices/virtual/memory_tiering")) {
    std::string name = tier.filename().string();
    if (!name.starts_with(kTier)) continue;
    std::optional<int> rank = parse_id(std::string_view(name).substr(kTier.size()));
    if (!rank) continue;
    NodeSet nodes = parse_nodes(read_first_line(tier / "nodelist"));
    for (MemoryFacts& of : facts) {
      if (nodes.contains(of.node)) of.rank = *rank + 1;
    }
  }
}

}  // namespace

std::vector<HugepagePool> read_hugepages(const std::string& folder) {
  std::vector<HugepagePool> pools;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    unsigned long kib = 0;
    unsigned long long count = 0;
    if (std::sscanf(entry.path().filename().c_str(), "hugepages-%lukB", &kib) != 1) continue;
    std::ifstream(entry.path() / "nr_hugepages") >> count;
    pools.push_back({uint64_t{kib} << 10, count});
  }
  std::ranges::sort(pools, {}, &HugepagePool::page_bytes);
  return pools;
}

std::optional<std::vector<NodeInfo>> read_nodes(const NodeSet& nodes) {
  std::vector<NodeInfo> found;
  bool is_known = true;
  nodes.for_each([&](int node) {
    const std::string memory = folder_of(node) + "meminfo";
    is_known = is_known && fs::exists(memory);
    found.push_back(
        {node, number_after(memory, "MemTotal:") * 1024, read_hugepages(folder_of(node) + "hugepages"), {}});
  });
  return is_known ? std::optional(std::move(found)) : std::nullopt;
}

NodeSet read_node_list(const char* name) { return parse_nodes(read_first_line(kNodes + std::string(name))); }

NodeSet read_gpu_nodes() {
  NodeSet nodes;
  NodeSet online;
  for (const fs::path& gpu : entries_of("/proc/driver/nvidia/gpus")) {
    std::string status = gpu / "numa_status";
    std::error_code error;
    if (!fs::exists(status, error)) continue;
    if (online.empty()) online = read_node_list("online");
    int node = static_cast<int>(number_after(status, "Node:"));
    if (node <= NodeSet::kMaxId && online.contains(node)) nodes.insert(node);
  }
  return nodes;
}

void add_gpu_nodes(std::vector<NodeInfo>& nodes, const NodeSet& gpu_nodes) {
  gpu_nodes.for_each([&](int node) {
    if (std::ranges::find(nodes, node, &NodeInfo::node) != nodes.end()) return;
    uint64_t kibibytes = number_after(folder_of(node) + "meminfo", "MemTotal:");
    nodes.push_back({node, kibibytes * 1024, {}, {}});
  });
  std::ranges::sort(nodes, {}, &NodeInfo::node);
}

void add_distances(std::vector<NodeInfo>& nodes, const NodeSet& online) {
  std::vector<int> columns;
  online.for_each([&](int node) { columns.push_back(node); });
  bool are_known = true;
  for (NodeInfo& node : nodes) {
    std::vector<uint32_t> row = read_distances(node.node);
    are_known = are_known && row.size() == columns.size() && online.contains(node.node);
    node.distances.clear();
    for (size_t i = 0; are_known && i < row.size(); i++) {
      bool is_described = std::ranges::find(nodes, columns[i], &NodeInfo::node) != nodes.end();
      if (is_described) node.distances.push_back(row[i]);
    }
  }
  if (are_known) return;
  for (NodeInfo& node : nodes) node.distances.clear();
}

std::vector<MemoryFacts> read_memory_facts(const std::vector<NodeInfo>& nodes, const NodeSet& gpu_nodes) {
  std::vector<MemoryFacts> facts;
  for (const NodeInfo& node : nodes) {
    MemoryFacts& of = facts.emplace_back(MemoryFacts{.node = node.node});
    if (gpu_nodes.contains(node.node)) of.named = MemoryTier::kGpu;
    add_performance(of);
  }
  add_ranks(facts);
  add_dax_devices(facts);
  return facts;
}

}  // namespace numalign
