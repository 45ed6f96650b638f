#include "platform/files/inotify.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/files/file_lock.h"
#include "platform/files/folder.h"
#include "support/temporary_folder.h"

namespace numalign {
namespace {

using test::TemporaryFolder;

Inotify open_or_die() {
  Result<Inotify> inotify = Inotify::open();
  EXPECT_TRUE(inotify.ok());
  return std::move(inotify).value();
}

std::vector<FolderEvent> next_events(Inotify& inotify) {
  pollfd ready{inotify.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 10'000), 1);
  return inotify.read().value();
}

TEST(Inotify, TellsOfTheDeathOfAProcessThatHadAFileOpenForWriting) {
  TemporaryFolder temporary;
  Folder folder = Folder::open(temporary.path(), {}).value();
  Inotify inotify = open_or_die();
  int watch = inotify.add(temporary.path(), IN_CLOSE_WRITE).value();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  pid_t child = fork();
  if (child == 0) {
    UniqueFd file = folder.open_file("owner", true, true).value();
    (void)!write(pipe_ends[1], "x", 1);
    for (;;) pause();
  }
  char byte;
  ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
  EXPECT_TRUE(inotify.read().value().empty());
  kill(child, SIGKILL);
  std::vector<FolderEvent> events = next_events(inotify);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].watch, watch);
  EXPECT_EQ(events[0].name, "owner");
  EXPECT_EQ(events[0].mask, unsigned{IN_CLOSE_WRITE});
  waitpid(child, nullptr, 0);
}

TEST(Inotify, DoesNotTellOfALookAtAFile) {
  TemporaryFolder temporary;
  Folder folder = Folder::open(temporary.path(), {}).value();
  (void)folder.replace("owner", "text");
  Inotify inotify = open_or_die();
  ASSERT_TRUE(inotify.add(temporary.path(), IN_CLOSE_WRITE).ok());
  { UniqueFd file = folder.open_to_look("owner").value(); }
  (void)folder.read("owner", 100).value();
  EXPECT_TRUE(inotify.read().value().empty());
}

TEST(Inotify, TellsOfAnAppendToAFileAndOfItsReplacement) {
  TemporaryFolder temporary;
  Folder folder = Folder::open(temporary.path(), {}).value();
  (void)folder.replace("file", "text");
  Inotify inotify = open_or_die();
  int watch = inotify.add(temporary.path() + "/file", IN_MODIFY | IN_ATTRIB | IN_DONT_FOLLOW).value();
  {
    UniqueFd file(open((temporary.path() + "/file").c_str(), O_WRONLY | O_APPEND));
    ASSERT_EQ(write(file.get(), "x", 1), 1);
  }
  std::vector<FolderEvent> events = next_events(inotify);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].watch, watch);
  EXPECT_EQ(events[0].mask, unsigned{IN_MODIFY});
  (void)folder.replace("file", "other");
  EXPECT_EQ(next_events(inotify)[0].mask, unsigned{IN_ATTRIB});
}

TEST(Inotify, RefusesALinkAndAFileWhereAFolderIsAskedFor) {
  TemporaryFolder temporary;
  Folder folder = Folder::open(temporary.path(), {}).value();
  (void)folder.replace("file", "text");
  ASSERT_EQ(symlink(temporary.path().c_str(), (temporary.path() + "/link").c_str()), 0);
  Inotify inotify = open_or_die();
  constexpr uint32_t kMask = IN_CLOSE_WRITE | IN_ONLYDIR | IN_DONT_FOLLOW;
  EXPECT_EQ(inotify.add(temporary.path() + "/file", kMask).error().errno_value, ENOTDIR);
  EXPECT_EQ(inotify.add(temporary.path() + "/link", kMask).error().errno_value, ENOTDIR);
}

// So no lock is gone without a notice that is unread, or was read.
TEST(Inotify, HasSomethingToReadBeforeTheLockOfAProcessThatDiesIsGone) {
  TemporaryFolder temporary;
  Folder folder = Folder::open(temporary.path(), {}).value();
  Inotify inotify = open_or_die();
  (void)inotify.add(temporary.path(), IN_CLOSE_WRITE).value();
  for (int round = 0; round < 20; round++) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) {
      UniqueFd owner = create_locked_file(folder, "owner", "", {}).value();
      (void)!write(pipe_ends[1], "x", 1);
      for (;;) pause();
    }
    char byte;
    ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
    UniqueFd file = folder.open_to_look("owner").value();
    (void)inotify.read();
    EXPECT_FALSE(inotify.has_unread());
    kill(child, SIGKILL);
    bool is_locked = true;
    while (is_locked) {
      is_locked = is_locked_elsewhere(file.get()).value();
      if (!is_locked) EXPECT_TRUE(inotify.has_unread());
    }
    waitpid(child, nullptr, 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
  }
}

// This thread and all others have another effective user id while it lives.
class OtherUser {
 public:
  explicit OtherUser(uid_t uid) { EXPECT_EQ(seteuid(uid), 0); }
  ~OtherUser() { EXPECT_EQ(seteuid(0), 0); }
};

// A user has few instances, and the kernel counts one until it is sure that nothing uses its watches.
// Other tests have instances too, so that this one counts as a user of its own.
TEST(Inotify, OpensAsManyAgainAsWereClosedJustBefore) {
  if (geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  TemporaryFolder temporary;
  ASSERT_EQ(chmod(temporary.path().c_str(), 0755), 0);
  OtherUser user(static_cast<uid_t>(100000 + getpid()));
  const auto all = [&temporary] {
    std::vector<Inotify> opened;
    while (opened.size() < 1000) {
      Result<Inotify> inotify = Inotify::open();
      if (!inotify.ok()) break;
      opened.push_back(std::move(inotify).value());
      (void)opened.back().add(temporary.path(), IN_CREATE);
    }
    return opened;
  };
  std::vector<Inotify> first = all();
  ASSERT_FALSE(first.empty());
  for (Inotify& inotify : first) inotify.close();
  EXPECT_GE(all().size(), first.size());
}

TEST(Inotify, HasNothingOpenOnceItWasClosed) {
  TemporaryFolder temporary;
  Inotify inotify = open_or_die();
  (void)inotify.add(temporary.path(), IN_CREATE).value();
  inotify.close();
  EXPECT_LT(inotify.fd(), 0);
  inotify.close();
}

}  // namespace
}  // namespace numalign
