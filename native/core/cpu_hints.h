// The topology hints of a request for CPUs. Follows GetTopologyHints of the kubelet's static CPU
// policy (v1.32), but counts a CPU that is both free and reusable once. Pure functions; safe to
// call from any thread.
#pragma once

#include <vector>

#include "core/core_sizes.h"
#include "core/hint_family.h"
#include "core/id_set.h"
#include "core/topology.h"

namespace numalign {

struct CpuHintsRequest {
  CpuSet available;  // free and not reserved
  // CPUs that earlier containers of the pod leave behind. Every hint includes their nodes.
  CpuSet reusable{};
  int count = 0;
  // Prefer every mask over the fewest packages, not only masks of the fewest nodes.
  bool align_by_socket = false;
  // Offer only masks whose whole cores add up to what each container wants. Only for machines whose
  // cores differ in size, as with best_fit().
  bool whole_cores = false;
  // With whole_cores: all reusable CPUs are among the `count`.
  bool keeps_reusable = false;
  // With whole_cores: the pod's containers, which need `count` CPUs at one time; none: one container.
  std::vector<CoreClaim> claims{};
};

// A mask is a hint if its nodes have `count` CPUs available or reusable. It is preferred if it has
// as few nodes as the request needs on the empty machine. Masks consist of nodes with CPUs.
// Machines with more than `enumerated` nodes get LinearHints; with whole_cores these are approximate
// if the sizes of cores do not divide each other and more masks count than WholeCoreMasks lists. If
// whole cores do not add up on all nodes together, single CPUs count. REQUIRES: count >= 1, at most 64 NUMA
// nodes.
HintFamily cpu_hints(const Topology& topology, const CpuHintsRequest& request,
                     int enumerated = kEnumeratedNodes);

// The CPUs of `cpus` whose whole core is in it.
CpuSet whole_cores(const Topology& topology, const CpuSet& cpus);

}  // namespace numalign
