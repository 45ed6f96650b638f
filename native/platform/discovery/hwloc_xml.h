// Reads a machine from an hwloc XML document (version 2.x), without hwloc: its own import trusts what its own
// export wrote. It does not check that sets agree, recurses as deep as the document nests, and announces on
// stderr that it gave up. Pure functions; safe to use from any thread.
#pragma once

#include <string_view>
#include <vector>

#include "core/machine_tree.h"
#include "core/result.h"
#include "core/topology.h"

namespace numalign {

struct HwlocXml {
  // The Package, Die, L3Cache, Core and PU objects; all others as what only nests.
  MachineTree tree;
  // Ascending, with the distances between all of them that the operating system reported, else those that a
  // user added, if any.
  std::vector<NodeInfo> nodes;
  // What the machine allowed to the process that captured it; empty where it does not say.
  CpuSet allowed;

  // The document's PCI devices, each id once, bridges left out. hwloc's format says nothing of drivers and
  // physical functions, and has the CPUs of the place where a device is attached in place of NUMA nodes.
  struct Device {
    PciDevice pci;
    CpuSet cpus;
  };
  std::vector<Device> devices;
};

// Misc objects, infos, user data and comments are passed over.
//
// Errors: kHwloc for a document that is too large, truncated, not XML, not hwloc's, of another version, or
// that contradicts itself; the message names the line.
Result<HwlocXml> read_hwloc_xml(std::string_view text);

}  // namespace numalign
