// Checks an hwloc XML document (version 2.x) and rewrites it to the part that discovery reads. hwloc's own
// import trusts what its own export wrote: it does not check that sets agree, recurses as deep as the
// document nests, and announces on stderr that it gave up. What comes out of here is small, well-formed and
// consistent, whichever XML parser hwloc was built with. Pure functions; safe to use from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/topology.h"

namespace numalign {

struct HwlocXml {
  std::string text;

  // The document's PCI devices, each id once, bridges left out. hwloc's format says nothing of drivers and
  // physical functions, and has the CPUs of the place where a device is attached in place of NUMA nodes.
  struct Device {
    PciDevice pci;
    CpuSet cpus;
  };
  std::vector<Device> devices;
};

// Keeps the Machine, Package, Die, Group, L3Cache, Core, PU and NUMANode objects, their page types and the
// distances between NUMA nodes. Other levels become caches of a kind that discovery filters out; Misc
// objects, infos, user data and comments go. I/O objects go too: PCI devices are read here, and hwloc never
// sees them.
//
// Errors: kHwloc for a document that is too large, truncated, not XML, not hwloc's, of another version, or
// that contradicts itself; the message names the line.
Result<HwlocXml> sanitize_hwloc_xml(std::string_view text);

}  // namespace numalign
