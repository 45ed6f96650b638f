// Parses a line of /proc/<pid>/numa_maps or /proc/<pid>/maps (proc(5), numa(7)). Pure functions;
// any text is accepted without harm.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace numalign {

// A mapping's pages by NUMA node. Nodes are in the order of the line, without duplicates.
struct NumaMapsLine {
  uint64_t start = 0;
  uint64_t page_bytes = 0;  // 0 if the line has no page size, which happens only without pages
  std::vector<std::pair<int, uint64_t>> pages_by_node;

  // The bytes of the mapping that are in memory.
  uint64_t resident_bytes() const;
};

// Parses a line like `7f0000000000 bind:1 anon=4 N1=4 kernelpagesize_kB=2048`. nullopt for any
// other line: no address, pages without their size, an impossible number, an impossible or repeated
// node. Ignores unknown members.
std::optional<NumaMapsLine> parse_numa_maps_line(std::string_view line);

struct AddressRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

// Parses a line like `7f0000000000-7f0000200000 rw-p ...`. nullopt for a line that does not start
// with a range.
std::optional<AddressRange> parse_maps_line(std::string_view line);

}  // namespace numalign
