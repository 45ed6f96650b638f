// The memory choice: the NUMA nodes that book a container's memory, near its merged hint. Follows
// Allocate of the kubelet's static Memory Manager policy (v1.32), but keeps a node in its group. Pure
// function; safe to call from any thread.
#pragma once

#include "core/hint_merger.h"
#include "core/memory_hints.h"

namespace numalign {

struct MemoryChoice {
  enum class Outcome : uint32_t {
    kChosen,
    kTooLittle,   // no set of nodes that may share memory and includes `nodes` has enough
    kTooWide,     // only sets with more nodes than on the empty machine have
    kOtherGroup,  // `clash` is booked alone, or with other nodes
  };
  Outcome outcome = Outcome::kChosen;
  NodeMask nodes;
  int clash = 0;

  friend bool operator==(const MemoryChoice&, const MemoryChoice&) = default;
};

// The nodes of the hint, or, if these do not have enough or break a group, the best set that includes
// them: preferred, then the fewest nodes, then the lowest. A preferred hint stays preferred. Without a
// hint (`any`), the best set that includes request.must. REQUIRES: as memory_hints().
MemoryChoice choose_memory(MemoryHintsRequest request, const MergedHint& hint);

}  // namespace numalign
