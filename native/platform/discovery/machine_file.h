// MachineFile: what hwloc found of this machine, kept for later processes until the machine starts
// again: hwloc reads some fifteen files for each CPU. Used on any thread; processes may write the file
// at once.
#pragma once

#include <optional>
#include <string>

#include "core/machine_text.h"

namespace numalign {

// Only root, whom all users trust, can write there.
constexpr const char* kMachineFile = "/run/numalign.machine";

// What must be the same for a file to say what is true of this machine: the boot, the addon and
// `reader`, and what Linux lists of CPUs and NUMA nodes. nullopt where Linux does not say all of it, and
// where something else than the kernel says it (a mount over a part of /sys).
std::optional<std::string> machine_mark(const std::string& reader);

// nullopt unless the file has this mark, is undamaged, and can only be written by root or this user.
std::optional<MachineParts> read_machine_file(const std::string& path, const std::string& mark);

// Does nothing where this user may not, or others may write to the folder.
void write_machine_file(const std::string& path, const std::string& mark, const MachineParts& machine);

}  // namespace numalign
