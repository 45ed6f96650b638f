// The topology hints of a request for memory of one or more types (ordinary and each size of hugepages).
// Follows calculateHints of the kubelet's static Memory Manager policy (v1.32). Pure function; safe to call
// from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/hint_family.h"

namespace numalign {

// Of each type the amounts of all nodes together are below 2^53.
struct MemoryType {
  uint64_t request = 0;  // bytes, not 0
  SmallWords free;       // by node
  SmallWords allocatable;
};

// What init containers of the pod leave behind. It serves a hint of exactly these nodes only.
struct ReusableMemory {
  NodeMask mask;                // not empty
  std::vector<uint64_t> bytes;  // by type
};

struct MemoryHintsRequest {
  int nodes = 0;  // of the machine
  std::vector<MemoryType> types;
  // By node: empty, nobody holds memory there; the node alone, for allocations on it alone; several nodes,
  // those that share its allocations.
  std::vector<NodeMask> group;
  std::vector<ReusableMemory> reusable;
  NodeMask must;  // every hint includes these nodes
};

// A mask is a hint if its nodes could have enough of every type between them, have it, and are unused, one
// node in use by itself, or the whole of a group. It is preferred if it has as few nodes as could ever do on
// the empty machine. All types of one request have these hints. Machines of more than `enumerated` nodes get
// LinearHints; there the family of many types is approximate where fewest_nodes() is not exact.
// REQUIRES: 1 to 64 nodes, at least one type, every list as long as it says.
HintFamily memory_hints(const MemoryHintsRequest& request, int enumerated = kEnumeratedNodes);

}  // namespace numalign
