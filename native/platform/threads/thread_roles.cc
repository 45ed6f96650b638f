#include "platform/threads/thread_roles.h"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "platform/files/unique_fd.h"
#include "platform/threads/affinity.h"

namespace numalign {
namespace {

// The thread names of Node 22 and later, and of libuv 1.50 and later (the kernel keeps 15
// characters).
ThreadRole role_by_name(std::string_view name) {
  if (name == "V8Worker" || name == "DelayedTaskSche") return ThreadRole::kV8;
  if (name == "libuv-worker") return ThreadRole::kPool;
  return ThreadRole::kOther;
}

}  // namespace

ThreadRoles& ThreadRoles::of_this_process() {
  // Never destroyed: pool threads may still run while the process exits.
  static auto& roles = *new ThreadRoles;
  return roles;
}

void ThreadRoles::set(pid_t tid, ThreadRole role) {
  std::lock_guard lock(mutex_);
  roles_[tid] = role;
}

void ThreadRoles::forget(pid_t tid) {
  std::lock_guard lock(mutex_);
  roles_.erase(tid);
}

ThreadRole ThreadRoles::get(pid_t tid) {
  // Even before this addon was loaded there.
  if (tid == own_process_id()) return ThreadRole::kMain;
  {
    std::lock_guard lock(mutex_);
    if (auto found = roles_.find(tid); found != roles_.end()) return found->second;
  }
  return role_by_name(thread_name(tid));
}

std::string thread_name(pid_t tid) {
  UniqueFd fd(open(("/proc/self/task/" + std::to_string(tid) + "/comm").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  char text[32];
  const ssize_t size = read(fd.get(), text, sizeof text);
  if (size <= 0) return {};
  std::string_view name(text, static_cast<size_t>(size));
  if (name.ends_with('\n')) name.remove_suffix(1);
  return std::string(name);
}

}  // namespace numalign
