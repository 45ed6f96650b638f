// MachineText: the CPUs and NUMA nodes of a machine as a text, with a mark that says of which machine
// they are, and a checksum. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/id_set.h"
#include "core/topology.h"

namespace numalign {

struct MachineParts {
  std::vector<CpuInfo> cpus;
  NodeSet nodes;

  friend bool operator==(const MachineParts&, const MachineParts&) = default;
};

// REQUIRES: `mark` has no empty line, and does not end with a newline.
std::string machine_text(std::string_view mark, const MachineParts& machine);

// nullopt if the text has another mark, or is damaged. What it says is for Topology::create() to check.
std::optional<MachineParts> parse_machine_text(std::string_view text, std::string_view mark);

}  // namespace numalign
