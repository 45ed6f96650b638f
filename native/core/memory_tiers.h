// Tells kinds of memory apart, from what the operating system or hwloc says of NUMA nodes. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/topology.h"

namespace numalign {

// What is known of a node's memory; 0 or none: unknown.
struct MemoryFacts {
  int node = 0;
  // What named it: a driver, the device that it comes from, or hwloc's subtype.
  std::optional<MemoryTier> named{};
  // Of Linux's memory tiers: less is faster.
  int rank = 0;
  // As the nearest CPUs see it.
  uint64_t bandwidth = 0;  // MB/s
  uint64_t latency = 0;    // ns

  // Takes a subtype of hwloc, such as HBM, MCDRAM, NVM, GPUMemory or CXL-DRAM; DRAM and others have
  // no effect.
  void note_subtype(std::string_view subtype);
  // Takes an attribute of memory or an info of hwloc: Bandwidth, Latency, MemoryTier or DAXType.
  void note(std::string_view name, std::string_view value);
};

// Gives each node without CPUs its tier: what named it; else HBM if it is faster than ordinary
// memory by tier or twice as fast by bandwidth, and kCxl if it is slower. Memory of nodes with CPUs
// is ordinary unless something named it. `with_cpus`: nodes that have some.
void assign_tiers(std::span<NodeInfo> nodes, const NodeSet& with_cpus, std::span<const MemoryFacts> facts);

}  // namespace numalign
