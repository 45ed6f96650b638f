// The PCI devices that Linux lists in sysfs. Devices may come and go meanwhile: leaves out one that
// is gone before it is read. What cannot be read, or makes no sense, counts as unknown. Safe to use
// from any thread.
#pragma once

#include <string>
#include <vector>

#include "core/topology.h"

namespace numalign {

// Reads `sysfs`/bus/pci/devices, and assigns the network interfaces, InfiniBand devices, disks,
// graphics cards and accelerators below `sysfs` to them. By id, without bridges. Empty without PCI.
// Network interfaces are those of the caller's network namespace. The NUMA node is what the kernel
// reports, even if there is no such node.
std::vector<PciDevice> read_pci_devices(const std::string& sysfs);

}  // namespace numalign
