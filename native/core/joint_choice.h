// The joint choice: from the hints of every resource to the NUMA nodes that all of them go to together: the
// fewest nodes, then the nearest, then those that have the least free, then the lowest mask. What the policy
// admits is what the merge admits. Pure function; safe to call from any thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/hint_merger.h"

namespace numalign {

struct JointOptions {
  MergeOptions merge;               // with distances, which count whenever they are there
  NodeMask within;                  // only sets of these nodes
  std::span<const uint32_t> rooms;  // by node: how much is free of everything, in parts of the machine
};

// Which sets of nodes were in the running; 0: they were not counted.
struct JointChoice {
  MergedHint merged;
  uint32_t sets = 0;      // that have as few nodes as the chosen one
  uint32_t nearest = 0;   // and are as near
  uint32_t tightest = 0;  // and have as little free

  friend bool operator==(const JointChoice&, const JointChoice&) = default;
};

// A mask that every resource prefers, where there is one. Else, where the policy admits that (best-effort and
// none, which admits everything), a set of nodes in which each resource finds a mask of its own. On more than
// merge.enumerated nodes only single nodes are compared so; wider sets are those of the merge. REQUIRES: as
// merge_hints(), and a room for each node.
JointChoice choose_jointly(std::span<const HintFamily> families, const JointOptions& options);

}  // namespace numalign
