// One line of /proc/<pid>/numa_maps or /proc/<pid>/maps (proc(5), numa(7)) as values. Pure functions; any
// text is accepted without harm.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace numalign {

// A mapping's pages by NUMA node. Nodes are in the order of the line, each once.
struct NumaMapsLine {
  uint64_t start = 0;
  uint64_t page_bytes = 0;  // 0 where the line tells none, which it does only if no page is there
  std::vector<std::pair<int, uint64_t>> pages_by_node;

  // How much of the mapping is there at all.
  uint64_t resident_bytes() const;
};

// Such as `7f0000000000 bind:1 anon=4 N1=4 kernelpagesize_kB=2048`. Nothing for a line that is no such line:
// no address, pages without their size, a number that cannot be one, a node that cannot be or is named twice.
// Members it does not know are passed over.
std::optional<NumaMapsLine> parse_numa_maps_line(std::string_view line);

struct AddressRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

// Such as `7f0000000000-7f0000200000 rw-p ...`. Nothing for a line that does not start with a range.
std::optional<AddressRange> parse_maps_line(std::string_view line);

}  // namespace numalign
