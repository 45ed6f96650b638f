// A program in place of this process: each test becomes one in a process of its own.
#include "platform/process/execution.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "platform/files/unique_fd.h"

namespace numalign {
namespace {

Program shell(const std::string& script, std::vector<int> descriptors = {}) {
  return {"sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin", "WORD=said"}, std::move(descriptors)};
}

// What a shell writes that is executed in another process, after `prepare` there; its status behind it.
template <class Prepare>
std::string run(const Program& program, Prepare prepare) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd reading(ends[0]), writing(ends[1]);
  pid_t child = fork();
  if (child == 0) {
    dup2(writing.get(), STDOUT_FILENO);
    prepare();
    _exit(execute(program).errno_value == 0 ? 98 : 99);
  }
  writing.reset();
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = read(reading.get(), part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<size_t>(n));
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return text + std::to_string(WEXITSTATUS(status));
}

std::string run(const Program& program) {
  return run(program, [] {});
}

TEST(Execution, FindsTheProgramByThePathOfItsEnvironment) {
  EXPECT_EQ(run(shell("echo $WORD; exit 3")), "said\n3");
}

TEST(Execution, PassesOnTheDescriptorsThatAreNamedAndNoOthers) {
  UniqueFd named(open("/dev/null", O_RDONLY | O_CLOEXEC)), other(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto look = [](int fd) { return "[ -e /proc/self/fd/" + std::to_string(fd) + " ]; echo $?; "; };
  EXPECT_EQ(run(shell(look(named.get()) + look(other.get()), {named.get()})), "0\n1\n0");
}

TEST(Execution, LeavesNoSignalIgnoredOrBlockedAndNoStreamThatDoesNotBlock) {
  const std::string script =
      "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'; "
      "echo $((0$(sed -n 's/^flags:[^0-9]*//p' /proc/$$/fdinfo/1) & 04000))";
  EXPECT_EQ(run(shell(script),
                [] {
                  signal(SIGPIPE, SIG_IGN);
                  sigset_t all;
                  sigfillset(&all);
                  sigprocmask(SIG_SETMASK, &all, nullptr);
                  fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
                  fcntl(STDOUT_FILENO, F_SETFD, FD_CLOEXEC);
                }),
            "SigBlk:0000000000000000\nSigIgn:0000000000000000\n0\n0");
}

TEST(Execution, ChangesNothingWhereTheProgramIsRefused) {
  UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char** const environment = environ;
  struct sigaction before {};
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, &before);
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigset_t mask_before, mask_after;
  sigprocmask(SIG_BLOCK, &usr1, &mask_before);

  const Error error = execute({"no-such-program", {"no-such-program"}, {"PATH=/usr/bin"}, {fd.get()}});

  EXPECT_EQ(error.errno_value, ENOENT);
  EXPECT_EQ(environ, environment);
  EXPECT_EQ(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  struct sigaction after {};
  sigaction(SIGPIPE, &before, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
  sigprocmask(SIG_SETMASK, &mask_before, &mask_after);
  EXPECT_EQ(sigismember(&mask_after, SIGUSR1), 1);
}

}  // namespace
}  // namespace numalign
