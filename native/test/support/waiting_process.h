// WaitingProcess: a child process that only waits until it is ended.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace numalign::test {

// It is running when the constructor returns: a sanitizer starts a thread of its own in it first.
class WaitingProcess {
 public:
  WaitingProcess() {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      if (write(ready[1], "", 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(ready[1]);
    char byte;
    if (pid_ < 0 || read(ready[0], &byte, 1) != 1) abort();
    close(ready[0]);
  }
  ~WaitingProcess() { end(); }

  pid_t pid() const { return pid_; }

  void end() {
    if (std::exchange(ended_, true)) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
  bool ended_ = false;
};

}  // namespace numalign::test
