// ThreadRoles: what is known about the threads of this process. On Node 20 all of them have the
// same name, so only threads that this addon met are known: the threads of JavaScript environments,
// Workers that it saw start, and pool threads that ran one of its jobs. Newer versions name the
// threads of libuv and V8. Thread-safety: all members may be called from any thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <string>

namespace numalign {

// In the order in which they choose among CPUs.
enum class ThreadRole { kMain, kWorker, kPool, kV8, kOther };
constexpr int kThreadRoles = 5;

constexpr bool runs_javascript(ThreadRole role) {
  return role == ThreadRole::kMain || role == ThreadRole::kWorker;
}

class ThreadRoles {
 public:
  static ThreadRoles& of_this_process();

  void set(pid_t tid, ThreadRole role);
  void forget(pid_t tid);
  // The role that was set, else by the thread's name.
  ThreadRole get(pid_t tid);

 private:
  std::mutex mutex_;
  std::map<pid_t, ThreadRole> roles_;
};

// The name of a thread of this process (/proc/self/task/<tid>/comm); empty once it has ended.
std::string thread_name(pid_t tid);

}  // namespace numalign
