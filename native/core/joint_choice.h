// The joint choice: turns the hints of every resource into NUMA nodes for all of them together: the
// fewest nodes, then the nearest, then those beside the most devices, then those with the least room,
// then the lowest mask. A policy
// admits the same hints as in a merge. Pure function; safe to call from any thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/hint_merger.h"

namespace numalign {

struct JointOptions {
  MergeOptions merge;                      // with distances, which always count if present
  NodeMask within;                         // only sets of these nodes
  std::span<const uint32_t> rooms;         // by node: the free amount of everything, in parts of the machine
  std::span<const uint32_t> devices = {};  // by node: the requested devices beside it; empty: none count
};

// The candidate sets of nodes; 0: they were not counted.
struct JointChoice {
  MergedHint merged;
  uint32_t sets = 0;      // with as few nodes as the chosen one
  uint32_t nearest = 0;   // of these, with nodes as near
  uint32_t tightest = 0;  // of these, with as many devices, and as little free

  friend bool operator==(const JointChoice&, const JointChoice&) = default;
};

// Returns a mask that every resource prefers, if there is one. Else, if the policy admits it
// (best-effort, and none, which admits everything), a set of nodes that contains a mask of each
// resource. With more than merge.enumerated nodes, compares only single nodes; wider sets come from
// the merge. REQUIRES: as merge_hints(), and a room for each node.
JointChoice choose_jointly(std::span<const HintFamily> families, const JointOptions& options);

}  // namespace numalign
