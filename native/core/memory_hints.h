// The topology hints of a request for memory of one or more types (ordinary and each size of
// hugepages). Follows calculateHints of the kubelet's static Memory Manager policy (v1.32). Pure
// function; safe to call from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/hint_family.h"

namespace numalign {

// The amounts of all nodes together are below 2^53 for each type.
struct MemoryType {
  uint64_t request = 0;  // bytes, not 0
  SmallWords free;       // by node
  SmallWords allocatable;
};

// What init containers of the pod leave behind. It serves only a hint of exactly these nodes.
struct ReusableMemory {
  NodeMask mask;                // not empty
  std::vector<uint64_t> bytes;  // by type
};

struct MemoryHintsRequest {
  int nodes = 0;  // of the machine
  std::vector<MemoryType> types;
  // By node: empty if no grant holds memory there; the node alone for allocations on it alone;
  // several nodes if they share its allocations.
  std::vector<NodeMask> group;
  std::vector<ReusableMemory> reusable;
  NodeMask must;  // every hint includes these nodes
  // Nodes whose group lacks a node: it takes no more until that node is back.
  NodeMask closed{};
};

// A mask is a hint if its nodes together can and do have enough of every type, and are all unused,
// one node that is used alone, or a whole group. It is preferred if it has as few nodes as the
// request needs on the empty machine. All types of one request have these hints. Machines with more
// than `enumerated` nodes get LinearHints; there, the family of many types is approximate if
// fewest_nodes() is not exact. REQUIRES: 1 to 64 nodes, at least one type, every list of its stated
// length.
HintFamily memory_hints(const MemoryHintsRequest& request, int enumerated = kEnumeratedNodes);

}  // namespace numalign
