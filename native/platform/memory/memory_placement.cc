#include "platform/memory/memory_placement.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "core/numa_maps.h"
#include "platform/files/unique_fd.h"
#include "platform/memory/memory_policy.h"

namespace numalign {
namespace {

constexpr size_t kChunk = 1024;  // pages in one call

// Calls `visit` with each line of a file. Returns an errno if the file cannot be read.
template <class Visit>
int for_each_line(const char* path, Visit&& visit) {
  errno = 0;
  std::ifstream file(path);
  if (!file) return errno != 0 ? errno : EIO;
  for (std::string line; std::getline(file, line);) visit(std::string_view(line));
  return file.bad() ? EIO : 0;
}

// Finds present pages that move_pages(2) misses, for example those that NUMA balancing has marked
// to see who uses them next (Linux 6.1); /proc/self/pagemap shows them. Their node becomes EBUSY.
// EFAULT is right: nothing is there, or only the shared zero page.
void find_hidden(uint64_t first_page, std::span<int> nodes) {
  constexpr uint64_t kIsThere = uint64_t{1} << 63;
  if (std::ranges::find(nodes, -ENOENT) == nodes.end()) return;
  UniqueFd pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::array<uint64_t, kChunk> entries{};
  if (!pagemap.valid()) return;
  // What cannot be read stays 0.
  (void)!pread(pagemap.get(), entries.data(), nodes.size() * sizeof(uint64_t),
               static_cast<off_t>(first_page * sizeof(uint64_t)));
  for (size_t i = 0; i < nodes.size(); i++)
    if (nodes[i] == -ENOENT && (entries[i] & kIsThere)) nodes[i] = -EBUSY;
}

// Uses move_pages(2); returns the errno of a failure.
int ask_for_pages(uint64_t start, uint64_t end, MemoryPlacement& placement) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::array<void*, kChunk> pages;
  std::array<int, kChunk> nodes;
  uint64_t at = start - start % page;
  while (at < end) {
    size_t n = 0;
    for (uint64_t next = at; n < kChunk && next < end; next += page) {
      pages[n++] = reinterpret_cast<void*>(next);
    }
    Result<Done> asked = nodes_of_pages(std::span(pages).first(n), std::span(nodes).first(n));
    if (!asked.ok()) return asked.error().errno_value;
    find_hidden(at / page, std::span(nodes).first(n));
    for (size_t i = 0; i < n; i++, at += page) {
      uint64_t bytes = std::min(at + page, end) - std::max(at, start);
      if (nodes[i] >= 0) {
        placement.bytes_by_node[nodes[i]] += bytes;
      } else {
        (nodes[i] == -ENOENT || nodes[i] == -EFAULT ? placement.absent : placement.unknown) += bytes;
      }
    }
  }
  return 0;
}

// Adds the part of a mapping that has `bytes` bytes.
void add_part(const NumaMapsLine& line, uint64_t mapping_bytes, uint64_t bytes, MemoryPlacement& placement) {
  uint64_t resident = line.resident_bytes();
  if (resident > mapping_bytes) {
    placement.unknown += bytes;  // it has changed between the two files
  } else if (resident == 0) {
    placement.absent += bytes;
  } else if (bytes == mapping_bytes) {
    for (auto [node, pages] : line.pages_by_node) placement.bytes_by_node[node] += pages * line.page_bytes;
    placement.absent += mapping_bytes - resident;
  } else if (resident == mapping_bytes && line.pages_by_node.size() == 1) {
    placement.bytes_by_node[line.pages_by_node[0].first] += bytes;
  } else {
    placement.unknown += bytes;
  }
}

// Uses /proc/self/maps, which has the ends of mappings, and numa_maps, which has their pages;
// returns an errno.
int read_mappings(uint64_t start, uint64_t end, MemoryPlacement& placement) {
  std::map<uint64_t, AddressRange> mappings;
  int failed = for_each_line("/proc/self/maps", [&](std::string_view line) {
    auto range = parse_maps_line(line);
    if (range && range->start < end && range->end > start) mappings[range->start] = *range;
  });
  if (failed != 0) return failed;
  uint64_t known = 0;
  failed = for_each_line("/proc/self/numa_maps", [&](std::string_view text) {
    auto line = parse_numa_maps_line(text);
    auto found = line ? mappings.find(line->start) : mappings.end();
    if (found == mappings.end()) return;
    const AddressRange& range = found->second;
    uint64_t bytes = std::min(range.end, end) - std::max(range.start, start);
    add_part(*line, range.end - range.start, bytes, placement);
    known += bytes;
    mappings.erase(found);
  });
  placement.unknown += end - start - known;
  return failed;
}

}  // namespace

bool MemoryPlacement::has_other_than(const NodeSet& nodes) const {
  if (absent > 0) return true;
  return std::ranges::any_of(bytes_by_node, [&](const auto& entry) { return !nodes.contains(entry.first); });
}

MemoryPlacement placement_of_range(const void* address, size_t bytes) {
  uint64_t start = reinterpret_cast<uintptr_t>(address);
  MemoryPlacement placement;
  placement.source = MemoryPlacement::Source::kMovePages;
  int refused = ask_for_pages(start, start + bytes, placement);
  if (refused == 0 && placement.unknown == 0) return placement;
  MemoryPlacement mapped;
  mapped.source = MemoryPlacement::Source::kNumaMaps;
  mapped.errno_value = refused;
  int failed = read_mappings(start, start + bytes, mapped);
  if (refused == 0) return failed == 0 && mapped.unknown < placement.unknown ? mapped : placement;
  if (failed == 0) return mapped;
  placement = {};
  placement.unknown = bytes;
  placement.errno_value = failed;
  return placement;
}

MemoryPlacement placement_of_process(pid_t pid) {
  MemoryPlacement placement;
  placement.source = MemoryPlacement::Source::kNumaMaps;
  const std::string path = "/proc/" + (pid == 0 ? "self" : std::to_string(pid)) + "/numa_maps";
  int failed = for_each_line(path.c_str(), [&](std::string_view text) {
    auto line = parse_numa_maps_line(text);
    if (!line) return;
    for (auto [node, pages] : line->pages_by_node) placement.bytes_by_node[node] += pages * line->page_bytes;
  });
  if (failed == 0) return placement;
  placement = {};
  placement.errno_value = failed;
  return placement;
}

}  // namespace numalign
