// Repacking: finds which grants move, and to which NUMA nodes, so that a request has room. Works by
// counts: each proposal still needs a decision on the CPUs themselves, and no acceptable one is
// left out. Pure function: no state; safe to call from any thread.
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
  // The places that its policy admits.
  std::vector<Place> places;
  // False: it ends before others begin, and they may have what it had.
  bool stays = true;
};

// A grant that may move.
struct MovableGrant {
  struct Target {
    NodeMask nodes;
    // Its memory is on these nodes already, and stays.
    bool keeps_memory = false;
  };
  RepackingDemand demand;
  RepackingHolding holding;
  std::vector<Target> targets;
  // The cost of moving its memory, and its CPUs.
  double bytes = 0;
  int cpus = 0;
};

struct RepackingProblem {
  RepackingGround ground;
  std::vector<RequestDemand> request;
  // In the order that breaks ties.
  std::vector<MovableGrant> grants;
};

// Indexes into the grants, and into the targets of this grant.
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
  size_t most = 1;
  // With more than two moves: how many grants are tried in sets of these, and then how many
  // targets.
  uint64_t budget = 0;
};

struct Repackings {
  // In the order of the moves: each has room while its grant is still in its old place. The fewest
  // bytes first, then the fewest CPUs, then the first grants, then the first targets.
  std::vector<std::vector<RepackingMove>> proposals;
  // True if there are no others.
  bool is_complete = true;
  // True if better ones may exist: the budget ran out, or there are too many grants for sets of
  // several.
  bool is_bounded = false;
};

Repackings find_repackings(const RepackingProblem& problem, const RepackingOptions& options);

}  // namespace numalign
