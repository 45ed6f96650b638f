// MachineFile: what hwloc found of this machine, kept for later processes until the machine starts
// again: hwloc reads some fifteen files for each CPU. Used on any thread; processes may write the file
// at once.
#pragma once

#include <optional>
#include <string>

#include "core/machine_text.h"

namespace numalign {

// Only root can write there.
constexpr const char* kMachineFile = "/run/numalign.machine";

// What must be the same for a file to say what is true of this machine: the boot, the code that reads it
// (this, and that at `reader`), what Linux lists of CPUs and NUMA nodes, and what the frequencies of
// cores depend on. nullopt where Linux does not say it, where something else is mounted at its folders,
// where code has no build id, and on processors whose topology changes while they run.
std::optional<std::string> machine_mark(const void* reader);

// Whether each CPU that is online has the core, package, L3 and NUMA node that Linux says now, and no
// part of what it says is hidden from this process. hwloc takes what it cannot read for what is not there.
bool is_as_linux_says(const MachineParts& machine);

// nullopt unless the file has this mark, is undamaged, and can only be written by root or this user.
std::optional<MachineParts> read_machine_file(const std::string& path, const std::string& mark);

// Does nothing where this user may not, or others may write to the folder.
void write_machine_file(const std::string& path, const std::string& mark, const MachineParts& machine);

}  // namespace numalign
