// ThreadBirth: while it lives, threads that the calling thread starts are born on given CPUs, and
// can be told from those that other threads start meanwhile. They inherit its mask, and a name that
// it has only for this time. Thread-safety: used by one thread, and destroyed on it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>

#include "core/id_set.h"
#include "core/result.h"

namespace numalign {

class ThreadBirth {
 public:
  // sched_setaffinity(2), prctl(2). `after`: the mask of the calling thread at the end. EINVAL:
  // none of `cpus` may be used here; nothing is changed then.
  static Result<ThreadBirth> on(const CpuSet& cpus, CpuSet after);

  ThreadBirth(ThreadBirth&& other) noexcept;
  ThreadBirth& operator=(ThreadBirth&&) = delete;
  ~ThreadBirth();

  // The started thread, of which there is at most one; nullopt if unknown. Threads that name
  // themselves at once (Workers, since Node 22) are recognized only if no other such thread was
  // started meanwhile.
  std::optional<pid_t> newborn() const;

 private:
  ThreadBirth(CpuSet after, std::string name, std::string marker, std::set<pid_t> threads);

  bool active_ = true;
  CpuSet after_;
  std::string name_;
  std::string marker_;
  std::set<pid_t> threads_;
};

}  // namespace numalign
