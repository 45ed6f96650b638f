#include "platform/files/inotify.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "platform/files/file_lock.h"
#include "platform/files/folder.h"
#include "support/temporary_folder.h"

namespace {

// What happens between the kernel's look at the path and the watch, in the next calls.
std::vector<std::function<void()>> meanwhile;

}  // namespace

extern "C" int __real_inotify_add_watch(int fd, const char* path, uint32_t mask);
extern "C" int __wrap_inotify_add_watch(int fd, const char* path, uint32_t mask) {
  if (meanwhile.empty()) return __real_inotify_add_watch(fd, path, mask);
  const numalign::UniqueFd found(open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  meanwhile.back()();
  meanwhile.pop_back();
  const std::string link = "/proc/self/fd/" + std::to_string(found.get());
  return __real_inotify_add_watch(fd, link.c_str(), mask & ~unsigned{IN_DONT_FOLLOW});
}

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

// A file that is replaced, and lives on under another name, while a watch of it begins.
class InotifyMeanwhile : public testing::Test {
 protected:
  void SetUp() override { replace(); }
  void TearDown() override { meanwhile.clear(); }
  void replace() {
    const std::string former = path_ + std::to_string(former_++);
    (void)link(path_.c_str(), former.c_str());
    (void)folder_.replace("file", "text");
  }
  Result<int> add(uint32_t mask) { return inotify_.add(path_, mask | IN_DONT_FOLLOW | IN_MASK_ADD); }
  // Whether the one event of these is of this watch.
  bool is_told(int watch) {
    replace();
    std::vector<FolderEvent> events = inotify_.read().value();
    std::erase_if(events, [](const FolderEvent& event) { return event.mask == IN_IGNORED; });
    return events.size() == 1 && events[0].watch == watch;
  }

  TemporaryFolder temporary_;
  Folder folder_ = Folder::open(temporary_.path(), {}).value();
  std::string path_ = temporary_.path() + "/file";
  Inotify inotify_ = open_or_die();
  int former_ = 0;
};

TEST_F(InotifyMeanwhile, WatchesTheFileThatReplacedTheOne) {
  meanwhile.assign(3, [this] { replace(); });
  Result<int> watch = add(IN_ATTRIB);
  ASSERT_TRUE(watch.ok());
  EXPECT_TRUE(meanwhile.empty());
  EXPECT_TRUE(is_told(watch.value()));
}

TEST_F(InotifyMeanwhile, KeepsTheWatchThatTheFormerFileHad) {
  const int former = add(IN_MODIFY).value();
  meanwhile.assign(1, [this] { replace(); });
  const int watch = add(IN_MODIFY).value();
  EXPECT_NE(watch, former);
  const UniqueFd file(open((path_ + "1").c_str(), O_WRONLY | O_APPEND));
  ASSERT_EQ(write(file.get(), "x", 1), 1);
  const std::vector<FolderEvent> events = inotify_.read().value();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].watch, former);
}

TEST_F(InotifyMeanwhile, RefusesAFileThatIsReplacedAtEachLookAndLeavesNoWatch) {
  meanwhile.assign(1000, [this] { replace(); });
  Result<int> watch = add(IN_ATTRIB);
  ASSERT_FALSE(watch.ok());
  EXPECT_EQ(watch.error().errno_value, EAGAIN);
  EXPECT_GT(meanwhile.size(), 800u);
  meanwhile.clear();
  (void)inotify_.read();
  replace();
  EXPECT_TRUE(inotify_.read().value().empty());
}

TEST_F(InotifyMeanwhile, LeavesNoWatchOfAFileThatIsRemoved) {
  meanwhile.assign(1, [this] {
    ASSERT_EQ(link(path_.c_str(), (path_ + "kept").c_str()), 0);
    ASSERT_EQ(unlink(path_.c_str()), 0);
  });
  Result<int> watch = add(IN_MODIFY);
  ASSERT_FALSE(watch.ok());
  EXPECT_EQ(watch.error().errno_value, ENOENT);
  (void)inotify_.read();
  const UniqueFd file(open((path_ + "kept").c_str(), O_WRONLY | O_APPEND));
  ASSERT_EQ(write(file.get(), "x", 1), 1);
  EXPECT_TRUE(inotify_.read().value().empty());
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
