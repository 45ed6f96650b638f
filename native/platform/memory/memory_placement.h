// MemoryPlacement: the NUMA nodes of a process's memory, read back from the kernel. Thread-safety:
// every function may be called from any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "core/id_set.h"

namespace numalign {

struct MemoryPlacement {
  enum class Source { kMovePages, kNumaMaps, kNone };

  std::map<int, uint64_t> bytes_by_node;
  uint64_t absent = 0;   // not touched yet, or swapped out: on no node
  uint64_t unknown = 0;  // not reported by the kernel
  Source source = Source::kNone;
  int errno_value = 0;  // why a better source failed; 0 if the best one answered

  // True if some of it is known to be outside these nodes.
  bool has_other_than(const NodeSet& nodes) const;
};

// The placement of `bytes` bytes at `address`. Uses move_pages(2); if that is denied or misses
// pages, /proc/self/numa_maps, which knows only whole mappings. A part of a mapping on several
// nodes is then unknown. All amounts add up to `bytes`.
MemoryPlacement placement_of_range(const void* address, size_t bytes);

// The placement of a whole process, 0 for this one: /proc/<pid>/numa_maps. Pages mapped twice count
// twice, also those of shared libraries. EACCES: another user's process.
MemoryPlacement placement_of_process(pid_t pid = 0);

}  // namespace numalign
