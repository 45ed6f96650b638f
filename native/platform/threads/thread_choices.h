// ThreadChoices: which masks the threads of this process have chosen. Where a cpuset or numalign leaves a
// thread less than that, the kernel shows only what is left, so it has to be known from before.
// Thread-safety: none of its own; ThreadPins takes turns.
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
  CpuSet asked;  // what the kernel was told last: another mask than `chosen` where numalign has cut that
};

class ThreadChoices {
 public:
  // What masks tell at a moment when no thread in `masks` runs on a grant. `limit`: what their cpuset has, by
  // which the kernel cuts masks; empty where it is not known. A thread that may run on all of it has chosen
  // nothing, that is `all`. `known`: what numalign has made of masks. A thread that has something else than
  // was made of its choice has made another one; a thread that is new was born of one that has the same mask,
  // the main thread rather than others. Threads that are in neither list are forgotten.
  void learn(const std::map<pid_t, CpuSet>& masks, const std::vector<pid_t>& others, const CpuSet& limit,
             const CpuSet& all, const std::vector<MemberThread>& known);

  void set(pid_t tid, ThreadChoice choice) { choices_[tid] = std::move(choice); }

  // Threads whose choice the kernel has refused to take, and would not any more: their cpuset had none of it,
  // and now has some of it, and other CPUs too.
  std::map<pid_t, CpuSet> unsettled(const CpuSet& limit) const;

  // Nullptr where nothing was learned.
  const ThreadChoice* find(pid_t tid) const;

  const std::map<pid_t, ThreadChoice>& all() const { return choices_; }

 private:
  std::map<pid_t, ThreadChoice> choices_;
};

}  // namespace numalign
