// MemberChoices: what the threads of a process have chosen, whatever their masks are at present. The one
// place that tells a choice from a mask that numalign, a cpuset or a parent thread has set. Follows
// sched_getaffinity(2). Thread-safety: none of its own; callers take turns for one process (numalign: under
// the state's lock).
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <vector>

#include "core/id_set.h"
#include "core/result.h"

namespace numalign {

// A thread whose mask is not its own choice at present. With empty sets: one that was there, with a mask of
// its own choice, so that it was not born of another since.
struct MemberThread {
  pid_t tid;
  CpuSet chosen;   // what it had, or would have by itself
  CpuSet applied;  // what it was given instead, read back; another mask than this one is a new choice
  CpuSet asked;    // what it was to be given: the kernel leaves out what its cpuset does not have at a time
  CpuSet place = {};  // its mask before the kernel reset it, for a thread that runs in a grant

  bool operator==(const MemberThread&) const = default;
};

// What numalign knows of a process's threads. A value that reads nothing.
class KnownThreads {
 public:
  // `unpinned`: threads whose masks were changed for them, and are no choice of theirs. `grants`: CPUs that
  // are the process's own. `limit`: what its cpuset has, by which the kernel cuts masks; empty: not known.
  KnownThreads(const std::vector<MemberThread>& threads, const std::vector<pid_t>& unpinned,
               std::vector<CpuSet> grants, CpuSet limit);

  // The entry that explains a thread's mask; nullptr where the mask is a new choice. The answer lives as long
  // as this object.
  const MemberThread* find(pid_t tid, const CpuSet& mask) const;

  // Of a thread without an entry of its own: the entry of one that was given the same mask, of which it was
  // born. Nullptr where there is none.
  const MemberThread* parent_of(pid_t tid, const CpuSet& mask) const;

  bool is_unpinned(pid_t tid) const { return unpinned_.contains(tid); }
  bool is_in_grant(const CpuSet& mask) const;
  CpuSet within_limit(const CpuSet& mask) const { return limit_.empty() ? mask : mask & limit_; }

 private:
  std::multimap<pid_t, MemberThread> threads_;
  std::set<pid_t> unpinned_;
  std::vector<CpuSet> grants_;
  CpuSet limit_;
};

struct MemberChoice {
  MemberThread thread;  // `place`: its mask now
  bool is_free;         // may use all of its cpuset: the kernel opens to it by itself what is given back

  bool operator==(const MemberChoice&) const = default;
};

struct MemberChoicesRequest {
  pid_t pid;
  std::vector<MemberThread> known;
  std::vector<pid_t> unpinned;  // the rest as for KnownThreads
  std::vector<CpuSet> grants;
  CpuSet limit;
  CpuSet all;  // what a thread has chosen that may use all of its cpuset
};

// Of a thread with this mask.
MemberChoice choice_of(pid_t tid, const CpuSet& mask, const KnownThreads& known, const CpuSet& limit,
                       const CpuSet& all);

// Of every thread of a process, by tid. ESRCH where there is no such process.
Result<std::vector<MemberChoice>> member_choices(const MemberChoicesRequest& request);

}  // namespace numalign
