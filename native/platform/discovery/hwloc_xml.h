// Reads a machine from an hwloc XML document (version 2 or 3) without hwloc. hwloc's own import
// trusts its export: it does not check that sets agree, recurses as deep as the document nests, and
// reports failures on stderr. Pure functions; safe to use from any thread.
#pragma once

#include <string_view>
#include <vector>

#include "core/core_kinds.h"
#include "core/machine_tree.h"
#include "core/memory_tiers.h"
#include "core/result.h"
#include "core/topology.h"

namespace numalign {

struct HwlocXml {
  // The Package, Die, L3Cache, Core and PU objects; all others only nest.
  MachineTree tree;
  // Ascending, with the distances between all of them that the operating system reported, else
  // those that a user added, if any.
  std::vector<NodeInfo> nodes;
  // What the capturing process was allowed to use; empty if the document does not say.
  CpuSet allowed;

  // What it says of kinds of cores; empty if nothing.
  std::vector<CoreFacts> cores;

  // What it says of each node's memory.
  std::vector<MemoryFacts> memory;

  // The document's PCI devices without bridges, each id once. hwloc's format has no drivers and no
  // physical functions. Instead of NUMA nodes it has the CPUs of the place where a device is
  // attached.
  struct Device {
    PciDevice pci;
    CpuSet cpus;
  };
  std::vector<Device> devices;
};

// Ignores Misc objects, infos of objects, user data and comments.
//
// Errors: kHwloc for a document that is too large, truncated, not XML, not hwloc's, of another
// version, or that contradicts itself; the message names the line.
Result<HwlocXml> read_hwloc_xml(std::string_view text);

}  // namespace numalign
