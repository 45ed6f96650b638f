// Best fit: which CPUs to take for a request. Follows the static policy of the kubelet's CPU Manager (v1.32
// and v1.36),
// with its results on every machine whose elements are of equal size; an element is always compared with its
// own size. Pure function: no state, no clock; safe to call from any thread.
#pragma once

#include "core/id_set.h"
#include "core/result.h"
#include "core/topology.h"

namespace numalign {

struct BestFitOptions {
  // Take single threads from all over the package instead of whole cores (distribute-cpus-across-cores).
  bool spread = false;
  // Take whole L3 groups where the request is that large, else the fewest of them
  // (prefer-align-cpus-by-uncorecache). Where cores, packages or L3 groups differ in size, what whole NUMA
  // nodes leave is in the fewest L3 groups, the smallest that hold it first. Ignored when distributing.
  bool align_by_l3 = false;
  // Balance over the fewest NUMA nodes that fit (distribute-cpus-across-numa).
  bool distribute_across_numa = false;
  // When distributing, CPUs are handed out in groups of this many: the threads of a core, to keep cores
  // whole.
  int cpu_group_size = 1;
  // Take whole cores only, whatever their sizes, or fail with kInsufficientCpus. Only for machines whose
  // cores differ in size: where they do not, a multiple of their size is whole by itself. Ignored when
  // distributing.
  bool whole_cores = false;
  // With align_by_l3: a rest that is no multiple of the threads of a core comes from one L3 group too, as of
  // v1.34. An odd CPU comes of a core that is used in part, where one is free: the kubelet splits another.
  bool any_rest_in_l3 = false;
};

// Takes `count` CPUs out of `available` (CPUs that the topology does not know are passed over). The answer
// has exactly `count` members, all from `available`; kInsufficientCpus where there are fewer. count 0 is the
// empty set. REQUIRES: count >= 0, options.cpu_group_size >= 1.
Result<CpuSet> best_fit(const Topology& topology, const CpuSet& available, int count,
                        const BestFitOptions& options);

}  // namespace numalign
