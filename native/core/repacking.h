// Repacking: proposes the grants to move, and their NUMA nodes, so that a request has room.
// Compares counts only: it leaves out no acceptable proposal, but each needs a decision on the CPUs
// themselves. Pure function: no state; safe to call from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/repacking_room.h"

namespace numalign {

// A part of the request, for example one container.
struct RequestDemand {
  struct Place {
    NodeMask cpus;
    NodeMask memory;
  };
  RepackingDemand demand;
  // The places that the request's policy admits.
  std::vector<Place> places;
  // False for an init container: later parts may reuse what it had.
  bool stays = true;
};

// A grant that may move.
struct MovableGrant {
  struct Target {
    NodeMask nodes;
    // True if the grant's memory is on these nodes already, and stays.
    bool keeps_memory = false;
  };
  RepackingDemand demand;
  RepackingHolding holding;
  std::vector<Target> targets;
  // The cost of a move: the bytes of its memory, if that moves, and its number of CPUs.
  double bytes = 0;
  int cpus = 0;
};

struct RepackingProblem {
  RepackingGround ground;
  std::vector<RequestDemand> request;
  // Their order breaks ties.
  std::vector<MovableGrant> grants;
};

// The index of a grant, and that of one of its targets.
struct RepackingMove {
  size_t grant;
  size_t target;
  friend bool operator==(const RepackingMove&, const RepackingMove&) = default;
};

struct RepackingOptions {
  // The exact number of moves.
  size_t moves = 1;
  // The number of proposals that the caller already has.
  size_t skip = 0;
  // The most proposals to return.
  size_t most = 1;
  // With more than two moves: the most steps of choosing sets of grants, and again of choosing
  // targets.
  uint64_t budget = 0;
};

struct Repackings {
  // The moves of a proposal are in their order: each has room while its grant still holds its old
  // place. Proposals with the fewest bytes come first, then those with the fewest CPUs, then by the
  // order of grants and targets.
  std::vector<std::vector<RepackingMove>> proposals;
  // True if there are no others.
  bool is_complete = true;
  // True if better proposals may exist: the budget ran out, or there are too many grants to try all
  // sets of several.
  bool is_bounded = false;
};

Repackings find_repackings(const RepackingProblem& problem, const RepackingOptions& options);

}  // namespace numalign
