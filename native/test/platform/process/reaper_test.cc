// A program that hears of the end of this one: how it is started, and what it hears.
#include "platform/process/reaper.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include "support/temporary_folder.h"

namespace numalign {
namespace {

using test::TemporaryFolder;

Result<UniqueFd> start(const std::string& script, const std::string& argument) {
  return start_reaper("/bin/sh", {"sh", "-c", script, argument}, {"PATH=/usr/bin:/bin", "WORD=said"});
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Reaper, LeavesAProcessThatHearsWhenTheOtherEndIsClosed) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  auto end = start("{ exec 4>\"$0\"; echo waits >&4; read -r _ <&3; echo $WORD >&4; } &", path);
  ASSERT_TRUE(end.ok());
  UniqueFd other = std::move(end).value();
  std::ifstream fifo(path);
  std::string line;
  ASSERT_TRUE(std::getline(fifo, line));
  EXPECT_EQ(line, "waits");
  other.reset();
  ASSERT_TRUE(std::getline(fifo, line));
  EXPECT_EQ(line, "said");
  EXPECT_FALSE(std::getline(fifo, line));
}

TEST(Reaper, HasNothingOpenButThePipe) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/seen";
  auto end =
      start("seen=$(for fd in 0 1 2 3; do readlink /proc/$$/fd/$fd; done); echo \"$seen\" >\"$0\"", path);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(content(path).substr(0, 36), "/dev/null\n/dev/null\n/dev/null\npipe:[");
}

TEST(Reaper, IsInASessionOfItsOwnAndBlocksAndIgnoresNoSignal) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/seen";
  sigset_t usr1, mask_before;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigprocmask(SIG_BLOCK, &usr1, &mask_before);
  const auto handler_before = signal(SIGPIPE, SIG_IGN);
  auto end = start(
      "{ test $(cut -d ' ' -f 6 /proc/$$/stat) = $$ && echo leads; sed -n 's/^SigBlk:.//p' "
      "/proc/self/status; "
      "kill -s PIPE $$; echo ignored; } >\"$0\"",
      path);
  signal(SIGPIPE, handler_before);
  sigprocmask(SIG_SETMASK, &mask_before, nullptr);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(content(path), "leads\n0000000000000000\n");
}

TEST(Reaper, OfAProgramThatIsNotThereIsAnErrorAndLeavesNoDescriptorOpen) {
  const auto lowest = [] { return UniqueFd(dup(STDERR_FILENO)).get(); };
  const int before = lowest();
  auto end = start_reaper("/no/such/program", {"none"}, {});
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().errno_value, ENOENT);
  EXPECT_EQ(std::string(end.error().syscall), "posix_spawn");
  EXPECT_EQ(lowest(), before);
}

}  // namespace
}  // namespace numalign
