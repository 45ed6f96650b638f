// MemoryPlacement: on which NUMA nodes the memory of a process is, read back from the kernel.
// Thread-safety: every function may be called from any thread.
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
  uint64_t unknown = 0;  // the kernel does not tell
  Source source = Source::kNone;
  int errno_value = 0;  // why not by a better source; 0 where the best one answered

  // Whether any of it is known not to be on these nodes.
  bool has_other_than(const NodeSet& nodes) const;
};

// Of `bytes` bytes from `address` on: by move_pages(2), and where that is denied or does not find pages that
// are there, by /proc/self/numa_maps, which knows whole mappings only: what shares its mapping with other
// memory on several nodes is unknown then. The sum of all is `bytes`.
MemoryPlacement placement_of_range(const void* address, size_t bytes);

// Of a whole process, 0 being this one: /proc/<pid>/numa_maps. Pages that are mapped twice count twice, those
// of shared libraries too. EACCES: the process is somebody else's.
MemoryPlacement placement_of_process(pid_t pid = 0);

}  // namespace numalign
