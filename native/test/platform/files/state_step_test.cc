// The beginning of a step on a state: the lock, if all is as the process knows it.
#include "platform/files/state_step.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "support/temporary_folder.h"

namespace numalign {
namespace {

using test::TemporaryFolder;

constexpr uint64_t kLimit = 1000;

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// A state folder with a folder inside, on a file system of memory if there is one.
class StateStepTest : public testing::Test {
 protected:
  void SetUp() override {
    temporary_.emplace(std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp");
    std::filesystem::create_directories(path("state/owners"));
    open();
    write(path("state/journal"), "one\n");
    open_journal();
  }
  std::string path(const std::string& name) const { return temporary_->path() + "/" + name; }
  void open() {
    folder_ = std::make_shared<const Folder>(std::move(Folder::open(path("state"), {})).value());
    owners_ = std::make_shared<const Folder>(std::move(folder_->open_child("owners", {})).value());
    // A step makes no file.
    (void)LockQueue(lock_file()).try_lock();
    queue_.emplace(lock_file());
    steps_ = {};
  }
  std::shared_ptr<LockFile> lock_file() { return std::make_shared<LockFile>(folder_, "lock", "a test"); }
  void open_journal() { journal_.emplace(std::move(*JournalFile::open(*folder_, "journal").value())); }
  std::optional<BegunStep> begin() {
    return steps_.begin(*queue_, {folder_, {owners_}, *journal_, 3, kLimit});
  }
  // Until changes of names are certain to show. False where they never are.
  bool settle() {
    if (!folder_->in_memory()) return false;
    while (!begin().value().lock.names()) continue;
    return true;
  }
  std::string lock_text() const { return folder_->read("lock", kLimit).value().value_or(""); }

  std::optional<TemporaryFolder> temporary_;
  std::shared_ptr<const Folder> folder_, owners_;
  std::optional<JournalFile> journal_;
  std::optional<LockQueue> queue_;
  StateSteps steps_;
};

TEST_F(StateStepTest, HasTheLockTheJournalAndTheHighestGeneration) {
  {
    std::optional<BegunStep> step = begin();
    ASSERT_TRUE(step);
    EXPECT_TRUE(step->lock.check().ok());
    EXPECT_EQ(step->journal, journal_->version().value());
    EXPECT_EQ(step->highest, 3u);
    EXPECT_EQ(lock_text(), "0000000000000000\na test");
    EXPECT_FALSE(begin());
    step->lock.set_number(7);
  }
  EXPECT_EQ(begin()->highest, 7u);
  const JournalFile other = std::move(*JournalFile::open(*folder_, "journal").value());
  other.show(9);
  EXPECT_EQ(begin()->highest, 9u);
}

TEST_F(StateStepTest, ChangesNothingIfTheLockIsNotFree) {
  LockQueue other(std::make_shared<LockFile>(folder_, "lock", "another"));
  std::optional<HeldLock> held = other.try_lock().value();
  ASSERT_TRUE(held);
  EXPECT_FALSE(begin());
  EXPECT_EQ(lock_text(), "0000000000000000\nanother");
  held->release();
  EXPECT_TRUE(begin());
}

// Whether or not the names were looked at before, and the lock's file is open.
TEST_F(StateStepTest, ChangesNothingIfAnythingIsNotAsItWas) {
  const std::string away = path("away");
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"a longer journal", [&] { write(path("state/journal"), std::string(kLimit, 'x')); }},
      {"no journal", [&] { std::filesystem::remove(path("state/journal")); }},
      {"another journal",
       [&] {
         write(path("state/new"), "one\n");
         std::filesystem::rename(path("state/new"), path("state/journal"));
       }},
      {"no folder inside", [&] { std::filesystem::rename(path("state/owners"), away); }},
      {"another folder inside",
       [&] {
         std::filesystem::rename(path("state/owners"), away);
         std::filesystem::create_directory(path("state/owners"));
       }},
      {"no folder", [&] { std::filesystem::rename(path("state"), away); }},
      {"another folder",
       [&] {
         std::filesystem::rename(path("state"), away);
         std::filesystem::create_directories(path("state/owners"));
         write(path("state/journal"), "one\n");
       }},
      {"another lock",
       [&] {
         write(path("state/new"), lock_text());
         std::filesystem::rename(path("state/new"), path("state/lock"));
       }},
      {"no lock", [&] { std::filesystem::remove(path("state/lock")); }},
  };
  for (const char* when : {"looked at", "settled", "closed"})
    for (const auto& [what, change] : changes) {
      const bool is_settled = when == std::string("settled");
      // The one that has the name is taken, if none was open.
      if (when == std::string("closed") && what == std::string("another lock")) continue;
      std::filesystem::remove_all(path("state"));
      std::filesystem::remove_all(away);
      std::filesystem::create_directories(path("state/owners"));
      open();
      write(path("state/journal"), "one\n");
      open_journal();
      ASSERT_TRUE(begin());
      if (is_settled && !settle()) continue;
      // Another process signs it last, so that a change of the file would show.
      (void)LockQueue(std::make_shared<LockFile>(folder_, "lock", "another")).try_lock();
      if (when == std::string("closed")) queue_.emplace(lock_file());
      change();
      const std::string before = lock_text();
      const bool had_lock = std::filesystem::exists(path("state/lock"));
      EXPECT_FALSE(begin()) << what << when;
      EXPECT_FALSE(begin()) << what << when;
      EXPECT_EQ(lock_text(), before) << what << when;
      EXPECT_EQ(std::filesystem::exists(path("state/lock")), had_lock) << what << when;
    }
}

TEST_F(StateStepTest, TakesTheLockThatHasTheNameOnceItIsTriedForItself) {
  ASSERT_TRUE(begin());
  std::filesystem::remove(path("state/lock"));
  EXPECT_FALSE(begin());
  std::optional<HeldLock> held = queue_->try_lock().value();
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->check().ok());
  held->release();
  EXPECT_TRUE(begin());
}

TEST_F(StateStepTest, KnowsUntilItsEndWhetherANameHasChanged) {
  if (!settle()) GTEST_SKIP() << "there is no file system of memory";
  std::optional<BegunStep> step = begin();
  EXPECT_TRUE(step->lock.names());
  write(path("state/journal"), "two\n");
  write(path("state/owners/one"), "");
  EXPECT_TRUE(step->lock.names());
  const std::function<void()> changes[] = {
      [&] { write(path("state/new"), ""); },
      [&] {
        std::filesystem::rename(path("state/journal"), path("state/moved"));
        std::filesystem::rename(path("state/moved"), path("state/journal"));
      },
      [&] { std::filesystem::remove(path("state/lock")); },
      [&] { std::filesystem::rename(path("state"), path("away")); },
  };
  for (const auto& change : changes) {
    ASSERT_TRUE(step->lock.names());
    change();
    EXPECT_FALSE(step->lock.names());
    step.reset();
    // Where the lock has no name, this gives it one.
    (void)queue_->try_lock();
    if (std::filesystem::exists(path("state")) && settle()) step = begin();
  }
}

TEST_F(StateStepTest, FindsAMountOnANameSoon) {
  const bool is_apart =
      unshare(CLONE_NEWNS) == 0 && mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  // What was open leads to the mounts from before.
  open();
  open_journal();
  if (!is_apart || !settle()) GTEST_SKIP() << "this process may not mount";
  write(path("other"), "one\n");
  ASSERT_EQ(mount(path("other").c_str(), path("state/journal").c_str(), nullptr, MS_BIND, nullptr), 0);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (begin() && std::chrono::steady_clock::now() < until) continue;
  EXPECT_FALSE(begin());
  umount(path("state/journal").c_str());
}

TEST_F(StateStepTest, AppendsToTheNamesThatItKnowsAndLooksAtOthers) {
  if (!settle()) GTEST_SKIP() << "there is no file system of memory";
  const auto text_of = [&](const char* name) { return folder_->read(name, kLimit).value().value_or(""); };
  write(path("state/copy"), "one\n");
  settle();
  const auto append = [&](uint64_t at, const char* line) {
    std::optional<BegunStep> step = begin();
    const UnchangedSince names = step->lock.names();
    EXPECT_TRUE(names);
    EXPECT_TRUE(journal_->append(*folder_, at, line, names).ok());
    return journal_->append_to_copy(*folder_, "copy", at, line, names);
  };
  EXPECT_TRUE(append(4, "two\n"));
  EXPECT_TRUE(append(8, "six\n"));
  EXPECT_EQ(text_of("copy"), "one\ntwo\nsix\n");
  EXPECT_EQ(text_of("journal"), "one\ntwo\nsix\n");
  // Another process has committed, but not to the copy.
  std::ofstream(path("state/journal"), std::ios::app) << "ten\n";
  EXPECT_FALSE(append(16, "two\n"));
  EXPECT_EQ(text_of("copy"), "one\ntwo\nsix\n");
  // Another copy has the name.
  std::filesystem::remove(path("state/copy"));
  write(path("state/copy"), text_of("journal"));
  settle();
  EXPECT_TRUE(append(20, "one\n"));
  EXPECT_EQ(text_of("copy"), "one\ntwo\nsix\nten\ntwo\none\n");
  // The copy was cut in place.
  std::filesystem::resize_file(path("state/copy"), 0);
  EXPECT_FALSE(append(24, "two\n"));
  EXPECT_EQ(text_of("copy"), "");
  // A journal that is not as long as it was is not appended to.
  std::filesystem::resize_file(path("state/journal"), 4);
  EXPECT_EQ(journal_->append(*folder_, 28, "two\n", begin()->lock.names()).error().errno_value, ESTALE);
  EXPECT_EQ(text_of("journal"), "one\n");
}

}  // namespace
}  // namespace numalign
