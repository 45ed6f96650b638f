#include "platform/threads/affinity.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "core/id_list.h"
#include "platform/files/cpu_list_file.h"
#include "platform/folder_entries.h"

namespace numalign {
namespace {

std::string thread_name(pid_t tid) {
  return tid == 0 ? std::string("the calling thread") : "thread " + std::to_string(tid);
}

// Adds the threads of one call of getdents64(2). False at the end of the folder.
Result<bool> add_entries(int fd, const std::string& path, std::vector<pid_t>& threads) {
  const long size = read_entries(fd, [&](const char* name) {
    if (name[0] != '.') threads.push_back(std::atoi(name));
  });
  if (size < 0) {
    return syscall_error("getdents64", "cannot list the threads in " + path, errno == ENOENT ? ESRCH : errno);
  }
  return size > 0;
}

void sort_once_each(std::vector<pid_t>& threads) {
  std::ranges::sort(threads);
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
}

}  // namespace

pid_t own_process_id() {
  static std::atomic<pid_t> pid = 0;
  // After fork(2), the child has another id.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { pid = 0; });
  if (pid == 0 || registered != 0) pid = getpid();
  return pid;
}

pid_t current_thread_id() {
  thread_local pid_t tid = 0;
  // After fork(2), the thread of the child has another id.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { tid = 0; });
  if (tid != 0 && registered == 0) return tid;
  return tid = static_cast<pid_t>(syscall(SYS_gettid));
}

Result<CpuSet> get_affinity(pid_t tid) {
  // The raw call, because glibc's wrapper hides how many bytes the kernel wrote.
  uint64_t usual[16];
  long usual_bytes = syscall(SYS_sched_getaffinity, tid, sizeof usual, usual);
  if (usual_bytes >= 0) {
    return CpuSet::from_words(std::span(usual).first(static_cast<size_t>(usual_bytes) / sizeof(uint64_t)));
  }
  std::vector<uint64_t> words(16);
  for (;;) {
    long bytes = syscall(SYS_sched_getaffinity, tid, words.size() * sizeof(uint64_t), words.data());
    if (bytes >= 0) {
      return CpuSet::from_words(std::span(words).first(static_cast<size_t>(bytes) / sizeof(uint64_t)));
    }
    bool too_small = errno == EINVAL && words.size() <= static_cast<size_t>(CpuSet::kMaxId) / 64;
    if (!too_small) return syscall_error("sched_getaffinity", "cannot read the mask of " + thread_name(tid));
    words.resize(words.size() * 2);
  }
}

Result<CpuSet> get_whole_mask(pid_t tid) {
  const std::string path =
      "/proc/self/task/" + std::to_string(tid == 0 ? current_thread_id() : tid) + "/status";
  std::ifstream file(path);
  constexpr std::string_view kField = "Cpus_allowed_list:\t";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kField)) return parse_id_list<CpuTag>(std::string_view(line).substr(kField.size()));
  }
  return syscall_error("read", "cannot read the mask of " + thread_name(tid) + " in " + path, ESRCH);
}

Result<Done> set_affinity(pid_t tid, const CpuSet& cpus) {
  std::span<const uint64_t> words = cpus.words();
  if (syscall(SYS_sched_setaffinity, tid, words.size_bytes(), words.data()) == 0) return Done{};
  return syscall_error("sched_setaffinity", "cannot move " + thread_name(tid));
}

bool is_thread_of(pid_t pid, pid_t tid) {
  // The kernel looks for the thread before it checks the right.
  return syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM;
}

bool is_own_thread(pid_t tid) {
  return tid == 0 || tid == current_thread_id() || is_thread_of(own_process_id(), tid);
}

Result<ThreadList> ThreadList::open(pid_t pid) {
  std::string path = "/proc/" + (pid == 0 ? std::string("self") : std::to_string(pid)) + "/task";
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) return ThreadList(std::move(fd), std::move(path));
  return syscall_error("open", "cannot list the threads in " + path, errno == ENOENT ? ESRCH : errno);
}

Result<std::vector<pid_t>> ThreadList::threads() {
  constexpr int kReadings = 4;
  std::vector<pid_t> threads;
  // The kernel stops early if the thread that it has reached ends. The folder's link count is the
  // number of threads: with that many, the end is reached.
  const auto has_all = [&] {
    sort_once_each(threads);
    struct stat folder_now;
    return fstat(fd_.get(), &folder_now) != 0 || threads.size() + 2 >= folder_now.st_nlink;
  };
  for (int reading = 0; reading < kReadings; reading++) {
    if (std::exchange(was_read_, true)) lseek(fd_.get(), 0, SEEK_SET);
    for (bool is_end = false; !is_end;) {
      Result<bool> added = add_entries(fd_.get(), path_, threads);
      if (!added.ok()) return added.error();
      is_end = !added.value();
      if (!is_end && has_all()) return threads;
    }
  }
  return threads;
}

Result<std::vector<pid_t>> threads_of(pid_t pid) {
  Result<ThreadList> list = ThreadList::open(pid);
  return list.ok() ? std::move(list).value().threads() : list.error();
}

Result<std::vector<pid_t>> process_threads() { return threads_of(0); }

Result<CpuSet> online_cpus() { return CpuListFile(kOnlineCpus).read(); }

Result<CpuSet> cpuset_limit() {
  CpuSet all;
  all.insert_range(0, CpuSet::kMaxId);
  Result<Done> widened = set_affinity(0, all);
  return widened.ok() ? get_affinity(0) : Result<CpuSet>(widened.error());
}

}  // namespace numalign
