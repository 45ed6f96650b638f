// MemberChoices: what the threads of a process have chosen, whatever their present masks. The one
// place that tells a choice from a mask set by numalign, a cpuset or a parent thread. Follows
// sched_getaffinity(2). Thread-safety: none; callers take turns for one process (numalign: under
// the state's lock).
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <span>
#include <vector>

#include "core/id_set.h"
#include "core/member_record.h"
#include "core/result.h"

namespace numalign {

// What numalign knows of a process's threads. A value that reads nothing.
class KnownThreads {
 public:
  // `unpinned`: threads whose masks others changed, and which are not their choice. `grants`: CPUs
  // of the process's own grants. `limit`: its cpuset, to which the kernel clips masks; empty:
  // unknown.
  KnownThreads(std::vector<MemberThread> threads, std::vector<pid_t> unpinned, std::vector<CpuSet> grants,
               CpuSet limit);

  // The entry that explains a thread's mask; nullptr if the mask is a new choice. Valid as long as
  // this object.
  const MemberThread* find(pid_t tid, const CpuSet& mask) const;

  // For a thread without an entry: the entry of a thread with the same applied mask, of which it
  // was born. nullptr if there is none.
  const MemberThread* parent_of(pid_t tid, const CpuSet& mask) const;

  bool is_unpinned(pid_t tid) const { return std::ranges::binary_search(unpinned_, tid); }
  bool is_in_grant(const CpuSet& mask) const;
  CpuSet within_limit(const CpuSet& mask) const { return limit_.empty() ? mask : mask & limit_; }

 private:
  std::span<const MemberThread> of(pid_t tid) const;

  std::vector<MemberThread> threads_;  // by id; those of one in the order given
  std::vector<pid_t> unpinned_;
  std::vector<CpuSet> grants_;
  CpuSet limit_;
};

struct MemberChoice {
  MemberThread thread;  // `place`: its mask now
  bool is_free;         // may use all of its cpuset: the kernel itself gives it CPUs that come back

  bool operator==(const MemberChoice&) const = default;
};

struct MemberChoicesRequest {
  pid_t pid;
  std::vector<MemberThread> known;
  std::vector<pid_t> unpinned;  // the rest as for KnownThreads
  std::vector<CpuSet> grants;
  CpuSet limit;
  CpuSet all;  // the choice of a thread that may use all of its cpuset
};

// The choice of a thread with this mask.
MemberChoice choice_of(pid_t tid, const CpuSet& mask, const KnownThreads& known, const CpuSet& limit,
                       const CpuSet& all);

// The choices of all threads of a process, by tid. ESRCH if there is no such process.
Result<std::vector<MemberChoice>> member_choices(const MemberChoicesRequest& request);

}  // namespace numalign
