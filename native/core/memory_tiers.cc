#include "core/memory_tiers.h"

#include <algorithm>
#include <charconv>

namespace numalign {
namespace {

uint64_t parse_number(std::string_view text) {
  uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() ? number : 0;
}

const MemoryFacts* facts_of(int node, std::span<const MemoryFacts> facts) {
  auto found = std::ranges::find(facts, node, &MemoryFacts::node);
  return found == facts.end() ? nullptr : &*found;
}

// The slowest memory of nodes with CPUs, by each measure.
MemoryFacts ordinary(const NodeSet& with_cpus, std::span<const MemoryFacts> facts) {
  MemoryFacts slowest;
  for (const MemoryFacts& of : facts) {
    if (!with_cpus.contains(of.node)) continue;
    slowest.rank = std::max(slowest.rank, of.rank);
    slowest.latency = std::max(slowest.latency, of.latency);
    if (of.bandwidth > 0 && (slowest.bandwidth == 0 || of.bandwidth < slowest.bandwidth)) {
      slowest.bandwidth = of.bandwidth;
    }
  }
  return slowest;
}

bool are_known(uint64_t a, uint64_t b) { return a > 0 && b > 0; }

MemoryTier tier_beside(const MemoryFacts& dram, const MemoryFacts& of) {
  bool has_ranks = dram.rank > 0 && of.rank > 0;
  if (has_ranks && of.rank < dram.rank) return MemoryTier::kHbm;
  if (has_ranks && of.rank > dram.rank) return MemoryTier::kCxl;
  if (are_known(dram.bandwidth, of.bandwidth)) {
    if (of.bandwidth >= 2 * dram.bandwidth) return MemoryTier::kHbm;
    if (of.bandwidth < dram.bandwidth) return MemoryTier::kCxl;
  }
  // HBM has no less latency than other memory.
  if (are_known(dram.latency, of.latency) && of.latency > dram.latency + dram.latency / 2) {
    return MemoryTier::kCxl;
  }
  return MemoryTier::kOther;
}

}  // namespace

void MemoryFacts::note_subtype(std::string_view subtype) {
  if (subtype == "HBM" || subtype == "MCDRAM") named = MemoryTier::kHbm;
  if (subtype == "NVM") named = MemoryTier::kPmem;
  if (subtype == "GPUMemory") named = MemoryTier::kGpu;
  if (subtype.starts_with("CXL-")) named = MemoryTier::kCxl;
}

void MemoryFacts::note(std::string_view name, std::string_view value) {
  if (name == "Bandwidth") bandwidth = std::max(bandwidth, parse_number(value));
  if (name == "Latency" && (latency == 0 || parse_number(value) < latency)) latency = parse_number(value);
  if (name == "DAXType" && value == "NVM") named = MemoryTier::kPmem;
}

void assign_tiers(std::span<NodeInfo> nodes, const NodeSet& with_cpus, std::span<const MemoryFacts> facts) {
  const MemoryFacts dram = ordinary(with_cpus, facts);
  for (NodeInfo& node : nodes) {
    const MemoryFacts* of = facts_of(node.node, facts);
    bool has_cpus = with_cpus.contains(node.node);
    node.tier = has_cpus ? MemoryTier::kDram : MemoryTier::kOther;
    if (of == nullptr) continue;
    if (of->named || !has_cpus) node.tier = of->named.value_or(tier_beside(dram, *of));
  }
}

}  // namespace numalign
