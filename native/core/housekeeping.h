// Housekeeping: the CPUs that take over work from quiet CPUs. Pure function: no state; safe to call
// from any thread.
#pragma once

#include "core/id_set.h"
#include "core/topology.h"

namespace numalign {

// Returns `base` without `quiet`, with offline CPUs, if any of it is online. Else the other online
// CPUs on the NUMA nodes of `base`; else those on the nearest nodes that have some; else, also if
// nodes or distances are unknown, all of them. Empty only if every online CPU is quiet.
CpuSet housekeeping_cpus(const Topology& topology, const CpuSet& base, const CpuSet& quiet);

}  // namespace numalign
