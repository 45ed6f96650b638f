// The record of what the threads of a process have chosen, as one line of JSON: members/*.masks of a
// state folder. Pure functions.
//
//   {"process":NAME,"threads":[[TID,CHOSEN,APPLIED,ASKED],...],"seen":[TID,...]}
//
// Sets are lists of CPUs. ASKED is left out if it is APPLIED. `seen`: the threads of which is known only
// that they existed; left out if there are none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/id_set.h"

namespace numalign {

// A thread whose present mask is not its own choice. With empty sets: an existing thread with a
// mask of its own choice, so that it does not count as newly born of another.
struct MemberThread {
  int tid;
  CpuSet chosen;      // its earlier mask, or the one it would have by itself
  CpuSet applied;     // the mask set instead, read back; any other mask is a new choice
  CpuSet asked;       // the requested mask: the kernel drops CPUs that are outside its cpuset at the time
  CpuSet place = {};  // its mask before the kernel reset it, for a thread that runs in a grant

  bool operator==(const MemberThread&) const = default;
};

enum class Places { kNone, kWithAsked };

// Empty without threads. `process`: a name that JSON writes as it is. kWithAsked: a row has all sets, and
// `place` as the last; no such text is put on record.
std::string format_member_record(std::string_view process, std::span<const MemberThread> threads,
                                 Places places = Places::kNone);

// The threads of the record of `process`. None if it is of another process, or unreadable: threads then
// keep their current masks as their choice. `places`: as it was written; kWithAsked: of any process, since
// the kernel shifts the start of one in a name by a tick between time namespaces.
std::vector<MemberThread> parse_member_record(std::string_view process, std::string_view text,
                                              Places places = Places::kNone);

}  // namespace numalign
