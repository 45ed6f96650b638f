// What Linux says of the memory of NUMA nodes: distances, tiers, and nodes that hwloc leaves out.
// Reads /sys and /proc; may be called from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/memory_tiers.h"
#include "core/topology.h"

namespace numalign {

// The list in a file below /sys/devices/system/node; empty if it cannot be read.
NodeSet read_node_list(const char* name);

// The online nodes whose memory NVIDIA's driver lists as that of its GPUs.
NodeSet read_gpu_nodes();

// Adds the online nodes of `gpu_nodes` that are missing, with the memory that Linux reports. hwloc
// leaves them out.
void add_gpu_nodes(std::vector<NodeInfo>& nodes, const NodeSet& gpu_nodes);

// The pools in a folder of hugepages, by size.
std::vector<HugepagePool> read_hugepages(const std::string& folder);

// These nodes with their memory and hugepages as they are now, and nothing else; nullopt if Linux does not
// say how much memory one has.
std::optional<std::vector<NodeInfo>> read_nodes(const NodeSet& nodes);

// The columns of Linux's distances are the online nodes, ascending. Empty for all nodes if a node
// came or went meanwhile: unknown distances are better than shifted ones.
void add_distances(std::vector<NodeInfo>& nodes, const NodeSet& online);

// From the list of GPU nodes, DAX devices, Linux's memory tiers, and the performance that the
// firmware reports (HMAT).
std::vector<MemoryFacts> read_memory_facts(const std::vector<NodeInfo>& nodes, const NodeSet& gpu_nodes);

}  // namespace numalign
