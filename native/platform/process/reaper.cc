#include "platform/process/reaper.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "platform/process/pointers.h"
#include "platform/syscall.h"

namespace numalign {
namespace {

constexpr int kPipe = 3;

class FileActions {
 public:
  explicit FileActions(int pipe) {
    posix_spawn_file_actions_init(&actions_);
    for (int fd = 0; fd < kPipe; fd++)
      posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions_, pipe, kPipe);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// A session of its own, and no signal ignored or blocked.
class Attributes {
 public:
  Attributes() {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<UniqueFd> start_reaper(const std::string& file, const std::vector<std::string>& arguments,
                              const std::vector<std::string>& environment) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return syscall_error("pipe2", "cannot make a pipe");
  const UniqueFd first(ends[0]);
  UniqueFd writing(ends[1]);
  // Not descriptor 3 itself, which a duplication onto itself would leave closed by execve(2).
  const UniqueFd reading(fcntl(first.get(), F_DUPFD_CLOEXEC, kPipe + 1));
  if (!reading.valid()) return syscall_error("fcntl", "cannot duplicate a pipe");
  pid_t child = 0;
  const int refusal = posix_spawn(&child, file.c_str(), FileActions(reading.get()).get(), Attributes().get(),
                                  pointers_to(arguments).data(), pointers_to(environment).data());
  if (refusal != 0) return syscall_error("posix_spawn", "cannot start " + file, refusal);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return writing;
}

}  // namespace numalign
