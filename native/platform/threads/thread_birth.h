// ThreadBirth: while it lives, threads that the calling thread starts are born on given CPUs, and can be told
// from those that other threads start meanwhile: they inherit its mask, and a name that it has only for this
// time. Thread-safety: used by one thread, and destroyed on it.
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
  // sched_setaffinity(2), prctl(2). `after`: the mask that the calling thread gets at the end. EINVAL: none
  // of `cpus` may be used here; nothing is changed then.
  static Result<ThreadBirth> on(const CpuSet& cpus, CpuSet after);

  ThreadBirth(ThreadBirth&& other) noexcept;
  ThreadBirth& operator=(ThreadBirth&&) = delete;
  ~ThreadBirth();

  // A thread that was started, of which there must be one at most; nothing where it is not known: threads
  // that name themselves at once (Workers, from Node 22 on) are told from others only where none other that
  // does was started meanwhile.
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
