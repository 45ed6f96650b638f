// Any line: parsing never crashes, and what it accepts is within its bounds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/id_set.h"
#include "core/numa_maps.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  numalign::NodeSet seen;
  if (auto line = numalign::parse_numa_maps_line(text)) {
    for (auto [node, pages] : line->pages_by_node) {
      if (node < 0 || node > numalign::NodeSet::kMaxId || seen.contains(node)) std::abort();
      if (pages > 0 && line->page_bytes == 0) std::abort();
      seen.insert(node);
    }
    if (line->resident_bytes() > uint64_t{1} << 53) std::abort();
  }
  if (auto range = numalign::parse_maps_line(text); range && range->start >= range->end) std::abort();
  return 0;
}
