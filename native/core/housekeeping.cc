#include "core/housekeeping.h"

#include <limits>
#include <map>

namespace numalign {

CpuSet housekeeping_cpus(const Topology& topology, const CpuSet& base, const CpuSet& quiet) {
  CpuSet rest = base - quiet;
  if (rest.intersects(topology.cpus())) return rest;

  const CpuSet others = topology.cpus() - quiet;
  std::map<int, CpuSet> others_of_node;
  NodeSet homes;
  for (const CpuInfo& cpu : topology.spec().cpus) {
    if (others.contains(cpu.cpu)) others_of_node[cpu.node].insert(cpu.cpu);
    if (base.contains(cpu.cpu)) homes.insert(cpu.node);
  }
  // A node is nearest to itself, whatever the table says.
  CpuSet nearest;
  uint32_t least = std::numeric_limits<uint32_t>::max();
  const std::vector<NodeInfo>& nodes = topology.spec().nodes;
  for (const NodeInfo& home : nodes) {
    if (!homes.contains(home.node)) continue;
    for (size_t i = 0; i < nodes.size(); i++) {
      bool is_home = homes.contains(nodes[i].node);
      if (!others_of_node.contains(nodes[i].node) || (!is_home && home.distances.empty())) continue;
      uint32_t distance = is_home ? 0 : home.distances[i];
      if (distance > least) continue;
      if (distance < least) nearest = {};
      least = distance;
      nearest |= others_of_node[nodes[i].node];
    }
  }
  return nearest.empty() ? others : nearest;
}

}  // namespace numalign
