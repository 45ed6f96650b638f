// Sysfs: what Linux says of CPUs and NUMA nodes in files below /sys/devices/system. May be called from any
// thread.
#pragma once

#include <optional>
#include <string>

#include "core/id_set.h"

namespace numalign {

// The first line of a file, without its end; nullopt if it cannot be read.
std::optional<std::string> read_first_line(const std::string& path);

// The same of a file below /sys/devices/system.
std::optional<std::string> read_sysfs(const std::string& name);

// The list in such a file; empty if it cannot be read.
CpuSet read_cpu_list(const std::string& name);

// The name of a file of a NUMA node.
std::string node_file(int node, const char* name);

}  // namespace numalign
