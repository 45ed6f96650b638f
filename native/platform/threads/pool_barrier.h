// PoolBarrier: finds the threads of libuv's pool. As many tasks as it has threads wait for each
// other: once all have arrived, every thread of the pool runs one of them. Thread-safety: all
// members may be called from any thread.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <set>

#include "core/result.h"

namespace numalign {

struct PoolThreads {
  std::set<pid_t> tids;
  // True if all expected threads arrived in time. Otherwise some were busy, or the pool has fewer
  // threads.
  bool complete = false;
};

class PoolBarrier {
 public:
  // This process's open barrier for `threads` tasks, else a new one that stays open for `timeout`.
  // Tasks of several callers share it: separate barriers would each hold some of the threads.
  static std::shared_ptr<PoolBarrier> open_for(size_t threads, std::chrono::milliseconds timeout);

  PoolBarrier(size_t threads, std::chrono::milliseconds timeout);
  ~PoolBarrier();
  PoolBarrier(const PoolBarrier&) = delete;
  PoolBarrier& operator=(const PoolBarrier&) = delete;

  // Called by each task. Waits until `threads` threads have called it, at most until the timeout
  // since the barrier was made.
  PoolThreads arrive();

 private:
  using Clock = std::chrono::steady_clock;

  const size_t threads_;
  const Clock::time_point deadline_;
  std::mutex mutex_;
  // std::condition_variable calls pthread_cond_clockwait, which glibc has since 2.30; Node runs
  // with 2.28.
  pthread_cond_t changed_;
  std::set<pid_t> arrived_;
};

}  // namespace numalign
