// ThreadChoices: the masks that the threads of this process have chosen. If a cpuset or numalign
// leaves a thread fewer CPUs, the kernel shows only these, so the choice must be known from before.
// Thread-safety: none; ThreadPins takes turns.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <vector>

#include "core/id_set.h"
#include "platform/threads/member_masks.h"

namespace numalign {

struct ThreadChoice {
  CpuSet chosen;
  CpuSet asked;        // the last request to the kernel; differs from `chosen` if numalign has clipped that
  uint64_t start = 0;  // of the thread, in clock ticks; 0: unknown
};

class ThreadChoices {
 public:
  // Learns from masks at a moment when no thread in `masks` runs on a grant. `limit`: their cpuset,
  // to which the kernel clips masks; empty: unknown. A thread that may run on all of it has chosen
  // nothing, that is `all`. `known`: the masks that numalign made. A thread whose mask differs from
  // the one made of its choice has made another choice. A new thread was born of one with the same
  // mask, preferably the main thread. Threads in neither list are forgotten.
  void learn(const std::map<pid_t, CpuSet>& masks, const std::vector<pid_t>& others, const CpuSet& limit,
             const CpuSet& all, const std::vector<MemberThread>& known);

  void set(pid_t tid, ThreadChoice choice) { choices_[tid] = std::move(choice); }

  // Forgets threads, given as pairs of id and choice.
  template <class Predicate>
  void forget_if(Predicate has_ended) {
    std::erase_if(choices_, [&](const auto& entry) { return entry.second.start != 0 && has_ended(entry); });
  }

  // Threads whose choice the kernel refused and would accept now: their cpuset had none of it, and
  // now has some of it, and other CPUs too.
  std::map<pid_t, CpuSet> unsettled(const CpuSet& limit) const;

  // nullptr if nothing was learned.
  const ThreadChoice* find(pid_t tid) const;

  const std::map<pid_t, ThreadChoice>& all() const { return choices_; }

 private:
  std::map<pid_t, ThreadChoice> choices_;
};

}  // namespace numalign
