// The PCI devices that Linux lists in sysfs. Devices may come and go meanwhile: one that is gone before it is
// read is left out, and what cannot be read of one, or makes no sense, counts as unknown. Safe to use from
// any thread.
#pragma once

#include <string>
#include <vector>

#include "core/topology.h"

namespace numalign {

// Reads `sysfs`/bus/pci/devices, and which of the network interfaces, InfiniBand devices, disks, graphics
// cards and accelerators below `sysfs` are whose. By id, without bridges. Empty where there is no PCI.
// Network interfaces are those of the caller's network namespace. The NUMA node is what the kernel says,
// whether there is such a node or not.
std::vector<PciDevice> read_pci_devices(const std::string& sysfs);

}  // namespace numalign
