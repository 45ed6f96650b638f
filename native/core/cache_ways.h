// Cache ways: which ways of one cache each grant has to itself, as masks for resctrl (Cache Allocation
// Technology). Pure function: no state; safe to call from any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace numalign {

// A bit a way, as in resctrl: bit 0 is the lowest.
using WayMask = uint32_t;

struct WayRequest {
  int ways = 0;         // how many it needs; at least CacheWaysQuestion::min_bits are taken for it
  WayMask current = 0;  // what it has now; 0: none
};

struct CacheWaysQuestion {
  WayMask all = 0;        // every way of the cache (cbm_mask)
  int min_bits = 1;       // the fewest ways that a mask may have (min_cbm_bits)
  WayMask shareable = 0;  // ways that other hardware uses too (shareable_bits)
  WayMask foreign = 0;    // ways of groups that are not numalign's
  WayMask base = 0;       // what the default group has now
  WayMask released = 0;   // ways of grants that have ended, and go back to the default group
  std::vector<WayRequest> requests;
};

struct CacheWays {
  std::vector<WayMask> masks;  // by request; 0: there is no room for it
  WayMask rest = 0;            // what the default group can have beside them; 0: nothing of `base` is usable
  int most = 0;                // the most ways that one more request could have
};

// Masks are contiguous and disjoint, and none has a way of `foreign`. A request keeps what it has where that
// is as wide as it needs to be: only others are placed. They are served in their order; one that finds no
// room leaves room for those behind it. Ways of `shareable` are given where there are no others. `rest` is
// contiguous, has at least `min_bits` ways that are in `base`, and is as wide as it can be.
// REQUIRES: 1 <= min_bits <= 32.
CacheWays cache_ways(const CacheWaysQuestion& question);

// The widest run of neighbouring ways in a mask, the lowest of several; 0 of 0.
WayMask widest_run(WayMask mask);

}  // namespace numalign
