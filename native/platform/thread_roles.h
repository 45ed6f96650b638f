// ThreadRoles: what is known about the threads of this process. On Linux with Node 20 all of them carry the
// same name, so only those that came by this addon are known: the threads of JavaScript environments and the
// pool threads that ran one of its jobs. Thread-safety: all members may be called from any thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>

namespace numalign {

enum class ThreadRole { kMain, kWorker, kPool, kOther };

class ThreadRoles {
 public:
  static ThreadRoles& of_this_process() {
    // Never destroyed: pool threads may still run while the process exits.
    static auto& roles = *new ThreadRoles;
    return roles;
  }

  void set(pid_t tid, ThreadRole role) {
    std::lock_guard lock(mutex_);
    roles_[tid] = role;
  }
  void forget(pid_t tid) {
    std::lock_guard lock(mutex_);
    roles_.erase(tid);
  }
  ThreadRole get(pid_t tid) {
    std::lock_guard lock(mutex_);
    auto found = roles_.find(tid);
    return found == roles_.end() ? ThreadRole::kOther : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<pid_t, ThreadRole> roles_;
};

}  // namespace numalign
