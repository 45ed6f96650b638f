#include "platform/process/execution.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "platform/process/pointers.h"
#include "platform/syscall.h"

namespace numalign {
namespace {

constexpr int kStreams = 3;

// Clears flags of a descriptor (F_GETFD) or of its open file (F_GETFL), and restores them.
class DescriptorFlags {
 public:
  static DescriptorFlags of_descriptor(int fd) { return {fd, F_GETFD, F_SETFD}; }
  static DescriptorFlags of_file(int fd) { return {fd, F_GETFL, F_SETFL}; }
  // True if the flag was set.
  bool clear(int flag) const {
    return before_ != -1 && (before_ & flag) != 0 && fcntl(fd_, set_, before_ & ~flag) == 0;
  }
  void restore() const { fcntl(fd_, set_, before_); }

 private:
  DescriptorFlags(int fd, int get, int set) : fd_(fd), set_(set), before_(fcntl(fd, get)) {}

  int fd_;
  int set_;
  int before_;
};

// While it lives, descriptors are as an executed program should find them.
class Inheritance {
 public:
  explicit Inheritance(const std::vector<int>& descriptors) {
    for (int fd = 0; fd < kStreams; fd++) {
      // Node opens them so that children do not inherit them, and pipes and sockets so that they do
      // not block.
      hand_down(fd);
      clear(DescriptorFlags::of_file(fd), O_NONBLOCK);
    }
    for (int fd : descriptors) hand_down(fd);
  }
  ~Inheritance() {
    for (const DescriptorFlags& flags : changed_) flags.restore();
  }
  Inheritance(const Inheritance&) = delete;
  Inheritance& operator=(const Inheritance&) = delete;

 private:
  void hand_down(int fd) { clear(DescriptorFlags::of_descriptor(fd), FD_CLOEXEC); }
  void clear(DescriptorFlags flags, int flag) {
    // Several descriptors may share an open file, whose flags the first one has changed.
    if (flags.clear(flag)) changed_.push_back(flags);
  }

  std::vector<DescriptorFlags> changed_;
};

// While it lives, no signal is ignored (Node ignores SIGPIPE), and this thread blocks none.
// execve(2) itself resets handlers.
class DefaultSignals {
 public:
  DefaultSignals() {
    for (int signal = 1; signal < NSIG; signal++) {
      struct sigaction now {};
      if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_IGN) continue;
      struct sigaction standard {};
      standard.sa_handler = SIG_DFL;
      if (sigaction(signal, &standard, nullptr) == 0) ignored_.emplace_back(signal, now);
    }
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &blocked_);
  }
  ~DefaultSignals() {
    pthread_sigmask(SIG_SETMASK, &blocked_, nullptr);
    for (const auto& [signal, action] : ignored_) sigaction(signal, &action, nullptr);
  }
  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> ignored_;
  sigset_t blocked_{};
};

}  // namespace

Error execute(const Program& program) {
  std::vector<char*> arguments = pointers_to(program.arguments);
  std::vector<char*> environment = pointers_to(program.environment);
  const Inheritance inheritance(program.descriptors);
  const DefaultSignals signals;
  // execvp(3) finds the program by the PATH of this environment, and passes it on. Other threads
  // may read it meanwhile.
  char** const before = std::exchange(environ, environment.data());
  execvp(program.file.c_str(), arguments.data());
  const int errno_value = errno;
  environ = before;
  return syscall_error("execve", "cannot execute " + program.file, errno_value);
}

}  // namespace numalign
