// MemberMasks: keeps the threads of a process off CPUs by their masks, and restores their choices.
// Follows sched_setaffinity(2); works on any process that the caller may move (of its own user, or
// with CAP_SYS_NICE). Thread-safety: none; callers take turns for one process (numalign: under the
// state's lock).
#pragma once

#include <sys/types.h>

#include <vector>

#include "core/id_set.h"
#include "core/result.h"
#include "platform/threads/member_choices.h"

namespace numalign {

// A thread that may still run on CPUs that it must leave.
struct StuckThread {
  pid_t tid;
  int errno_value;  // the kernel's refusal; 0 if the kernel did something else than asked
  CpuSet cpus;
};

// A thread whose mask has changed.
struct MaskChange {
  pid_t tid;
  CpuSet before;
  CpuSet now;
};

struct Confinement {
  std::vector<MemberThread> threads;  // to pass to the next call, by tid
  std::vector<MaskChange> changes;    // none in a dry run
  std::vector<StuckThread> stuck;
  int moved = 0;
  bool is_refused = false;     // for a dry run: the caller may not move some of the threads to be moved
  std::vector<CpuSet> places;  // for a dry run: the masks of threads to be moved or stuck, each once
  std::vector<pid_t> listed;   // for a dry run: the threads it has looked at
};

struct ConfinementRequest {
  pid_t pid;                        // every thread of this process
  std::vector<MemberThread> known;  // the result of the last call for it
  CpuSet taken;                     // no other process may be here
  CpuSet pool;                      // where threads go that have chosen nothing else
  CpuSet limit;                     // its cpuset, to which the kernel clips masks; empty: unknown
  std::vector<CpuSet> grants;   // CPUs of the process's own grants: threads that run within one of them stay
  bool only_narrow = false;     // no thread gets CPUs that it does not have now: safe at any time
  bool dry_run = false;         // reports what it would do, and does nothing
  std::vector<pid_t> unpinned;  // threads whose masks others changed, and which are not their choice
  std::vector<pid_t> listed;    // threads to look at first, from a dry run just before; none: lists them
};

// True if the caller may change the mask of a thread. Changes nothing: the kernel checks the right
// first, and then refuses an empty mask (sched_setaffinity(2): EPERM, EINVAL).
bool may_move(pid_t tid);

// Gives threads of a process their masks from before, unless they have others by now. False if all
// have. Needs no file.
bool put_back(pid_t pid, const std::vector<MaskChange>& changes);

// Gives every thread its choice without `taken`, or `pool` if nothing is left of it. Passes over
// the threads until two passes in a row find nothing new, because threads may start in between; a
// dry run ends with the first pass that finds a thread to move. ESRCH if there is no such process.
Result<Confinement> confine_member(const ConfinementRequest& request);

}  // namespace numalign
