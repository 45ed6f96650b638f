// Best fit: chooses the CPUs for a request. Follows the static policy of the kubelet's CPU Manager
// (v1.32 and v1.36), with its results on every machine whose elements have equal sizes; an element
// is always compared with its own size. Pure function: no state, no clock; safe to call from any
// thread.
#pragma once

#include <vector>

#include "core/core_sizes.h"
#include "core/id_set.h"
#include "core/result.h"
#include "core/topology.h"

namespace numalign {

struct BestFitOptions {
  // Take single threads from all over the package instead of whole cores
  // (distribute-cpus-across-cores).
  bool spread = false;
  // Take whole L3 groups if the request is that large, else the fewest groups
  // (prefer-align-cpus-by-uncorecache). If cores, packages or L3 groups differ in size, the part
  // outside whole NUMA nodes uses the fewest L3 groups, the smallest sufficient ones first. Ignored
  // when distributing.
  bool align_by_l3 = false;
  // Balance over the fewest NUMA nodes that fit (distribute-cpus-across-numa).
  bool distribute_across_numa = false;
  // When distributing, deal CPUs in groups of this many: the threads of a core, to keep cores
  // whole.
  int cpu_group_size = 1;
  // Take whole cores only, whatever their sizes, or fail with kInsufficientCpus; distribute and spread
  // only if that keeps cores whole. Only for machines whose cores differ in size: with equal sizes, a
  // multiple of the size is whole anyway.
  bool whole_cores = false;
  // With align_by_l3: a rest that is not a multiple of the threads of a core comes from one L3
  // group too, as since v1.34. An odd CPU comes from a partly used core, if one is free; the
  // kubelet splits another.
  bool any_rest_in_l3 = false;
  // When distributing, over at least this many NUMA nodes, if so many have CPUs: those that a hint
  // chose, as since v1.37.
  int least_nodes = 0;
  // When distributing, stay in one package if one holds the request, however uneven its nodes: since
  // v1.37 with align-by-socket.
  bool keep_package = false;
  // With align_by_l3: the fewest L3 groups also where all sizes are equal, where the kubelet may use more.
  bool fewest_l3 = false;
  // With whole_cores: what the pod's later containers want. If possible, leaves whole cores that add up
  // to it, of `available` alone, or else of `elsewhere` too.
  std::vector<CoreClaim> later{};
  CpuSet elsewhere{};
};

// Takes `count` CPUs out of `available`, and ignores CPUs that the topology does not have. The
// result has exactly `count` members, all from `available`; kInsufficientCpus if there are fewer.
// REQUIRES: count >= 0, options.cpu_group_size >= 1.
Result<CpuSet> best_fit(const Topology& topology, const CpuSet& available, int count,
                        const BestFitOptions& options);

}  // namespace numalign
