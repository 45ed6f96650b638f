// Housekeeping: the CPUs that take over what leaves quiet ones. Pure function: no state; safe to call from
// any thread.
#pragma once

#include "core/id_set.h"
#include "core/topology.h"

namespace numalign {

// `base` less `quiet`, offline CPUs included, where any of it is online. Else the other online CPUs on the
// NUMA nodes of `base`; else those on the nodes nearest to these that have any; else, where nodes or
// distances are unknown too, all of them. Empty only where every online CPU is quiet.
CpuSet housekeeping_cpus(const Topology& topology, const CpuSet& base, const CpuSet& quiet);

}  // namespace numalign
