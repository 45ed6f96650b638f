// Discovery: reads the running machine, a captured one (hwloc XML) or an invented one (hwloc
// synthetic) as a TopologySpec. The only file that uses hwloc. Thread-safety: every call loads its
// own hwloc topology; calls may run concurrently on any thread, and leave the binding of the
// calling thread alone.
#pragma once

#include <string>

#include "core/result.h"
#include "core/topology.h"

namespace numalign {

enum class DiscoverySource {
  kMachine,      // this machine; the text is ignored
  kBareMachine,  // the same without its devices, which most programs never ask for: see read_devices()
  kXml,          // the text is an hwloc XML document, version 2.x, as "lstopo --of xml" prints it
  kSynthetic,    // the text is an hwloc synthetic description, like "package:2 [numa] l3:2 core:8 pu:2"
};

// hwloc_topology_load(), after hwloc_topology_set_synthetic() for a synthetic machine;
// read_hwloc_xml().
//
// kMachine describes every online CPU and NUMA node, even those that a cgroup keeps from the caller
// (HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED). `allowed` is what the caller's cpuset lets it use,
// whatever its affinity mask. The first process of root keeps what hwloc found in kMachineFile
// (machine_file.h), which later ones read instead while it is true. Possible and isolated CPUs, the CPUs of
// nodes, the distances (as numactl prints them), tiers of memory, and nodes of GPU memory, which hwloc leaves
// out, come from Linux. Otherwise possible and allowed are the described CPUs (allowed may be narrower in an
// XML), isolated is empty, and distances are those of the XML. A synthetic description without memory has
// none.
//
// Devices are the PCI devices in sysfs, with the NUMA node that the kernel reports. In an XML, they
// have the nodes of the CPUs where hwloc attached them, and neither driver nor parent, which the
// format does not have. A synthetic description has no devices.
//
// The result always passes Topology::create(). If a description contradicts itself (a core on two
// NUMA nodes, an L3 in two packages, as on some virtual machines), the smaller element is split, as
// the kernel's scheduler does.
//
// Errors: kHwloc for a text that is not a machine, one with ids above CpuSet::kMaxId or
// NodeSet::kMaxId or with too many CPUs, and for an environment that can replace this machine
// (HWLOC_XMLFILE and others); the message says what would be valid. kSyscall if the CPUs that the
// cpuset allows cannot be read, or the process can open no more files.
//
// Where it reads this machine, hwloc writes one warning to stderr if the firmware contradicts itself;
// HWLOC_HIDE_ERRORS=2 in the environment silences it.
Result<TopologySpec> discover(DiscoverySource source, const std::string& text);

// The devices that kBareMachine leaves out, as they are now, near these nodes. By id.
std::vector<PciDevice> read_devices(const std::vector<NodeInfo>& nodes);

}  // namespace numalign
