// MemberMasks: keeps the threads of a process off CPUs by their masks, and gives them back what they had
// chosen. Follows sched_setaffinity(2); works on any process that the caller may move (its own user's, or
// with CAP_SYS_NICE). Thread-safety: none of its own; callers take turns for one process (numalign: under the
// state's lock).
#pragma once

#include <sys/types.h>

#include <vector>

#include "core/id_set.h"
#include "core/result.h"
#include "platform/threads/member_choices.h"

namespace numalign {

// A thread that still may run on CPUs that it must leave.
struct StuckThread {
  pid_t tid;
  int errno_value;  // the kernel's refusal; 0 where the kernel did something else than it was told
  CpuSet cpus;
};

struct Confinement {
  std::vector<MemberThread> threads;  // to be remembered for the next time, by tid
  std::vector<StuckThread> stuck;
  int moved = 0;
  bool is_refused = false;  // of a dry run: threads are to be moved that the caller may not move
  std::vector<CpuSet>
      places;  // of a dry run: the masks of those that are to be moved or are stuck, each once
};

struct ConfinementRequest {
  pid_t pid;                        // every thread of this process
  std::vector<MemberThread> known;  // as the last call for it has answered
  CpuSet taken;                     // nobody else may be here
  CpuSet pool;                      // where threads go that have chosen nothing else
  CpuSet limit;                     // what its cpuset has, by which the kernel cuts masks; empty: not known
  std::vector<CpuSet> grants;   // CPUs that are the process's own: threads that run within one of them stay
  bool only_narrow = false;     // nobody gets CPUs that he has not now: safe whenever it is done
  bool dry_run = false;         // tells what it would do, and does nothing
  std::vector<pid_t> unpinned;  // threads whose masks were changed for them, and are no choice of theirs
};

// Whether the caller may change the mask of a thread. Changes nothing: the kernel checks the right
// first, and then refuses an empty mask (sched_setaffinity(2): EPERM, EINVAL).
bool may_move(pid_t tid);

// Every thread gets what it has chosen less `taken`, or `pool` where nothing is left of that. Passes over the
// threads until two in a row find nothing new, since threads may be born in between; a dry run ends with the
// first pass that finds a thread to be moved. ESRCH where there is no such process.
Result<Confinement> confine_member(const ConfinementRequest& request);

}  // namespace numalign
