// The question of a placement: the hints of all resources, their merge, and the CPUs and NUMA nodes for
// memory near the merged hint, in one call from JavaScript. Pure functions; safe to call from any
// thread.
#pragma once

#include "core/memory_choice.h"
#include "core/merge_question.h"

namespace numalign {

// Hints near a jointly chosen one.
struct NarrowedHint {
  MergedHint cpus;
  MergedHint memory;
};

// Distributes CPUs and memory over jointly chosen nodes: CPUs go to the fewest that hold them, memory
// to all if it can be booked there, because the others may be for devices. `by_socket`: all nodes of
// a socket count as near, so CPUs may come from all. REQUIRES: rules of a joint choice, which made
// `hint` of these offers.
NarrowedHint narrow(const Offers& offers, const MergeRules& rules, const MergedHint& hint, bool by_socket);

// The CPUs of these NUMA nodes. `by_socket`: of all their sockets.
CpuSet cpus_of_nodes(const Topology& topology, NodeMask nodes, bool by_socket);

// Reads the rules of the merge and the offers; whether to merge them, and to list them; else the hint that
// was merged before (any, mask, preferred); whether nodes count by socket, and whether the hint is narrowed;
// whether CPUs are taken, and then the arguments of near_fit(), whose near CPUs count only without
// nodes in the hint; whether memory is taken. Writes, if the offers are merged, what answer_merge()
// writes, without the families unless they are listed; if the merge admits, the nodes near which CPUs
// are taken (none: any); whether there are enough CPUs, and these; the outcome, nodes and clash of
// the memory choice. `topology`: of questions about CPUs and of CPUs to take.
void answer_placement(WireReader& wire, const Topology* topology, WireWriter answer);

}  // namespace numalign
