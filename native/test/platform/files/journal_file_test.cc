// A file to which records are appended.
#include "platform/files/journal_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "support/temporary_folder.h"

namespace numalign {
namespace {

using test::TemporaryFolder;

constexpr size_t kLimit = 1 << 20;

class JournalFileTest : public testing::Test {
 protected:
  Folder folder() const { return Folder::open(temporary_.path(), {}).value(); }
  std::string path(const std::string& name = "journal") const { return temporary_.path() + "/" + name; }
  JournalFile write_and_open(const std::string& text) const {
    std::ofstream(path()) << text;
    return std::move(*JournalFile::open(folder(), "journal").value());
  }
  static Result<Done> append(const JournalFile& file, const Folder& folder, uint64_t at,
                             const std::string& text) {
    Result<UniqueFd> end = file.open_end(folder, at);
    if (!end.ok()) return end.error();
    return file.append(end.value(), at, text);
  }

  TemporaryFolder temporary_;
};

TEST_F(JournalFileTest, ReadsWhatWasAppendedSinceAnOffset) {
  JournalFile file = write_and_open("one\n");
  ASSERT_TRUE(append(file, folder(), 4, "two\n").ok());
  EXPECT_EQ(file.read(4, kLimit).value(), "two\n");
  EXPECT_EQ(file.read(0, kLimit).value(), "one\ntwo\n");
  EXPECT_EQ(file.read_some(0, 3).value(), "one");
  EXPECT_EQ(file.read_some(4, 100).value(), "two\n");
  EXPECT_EQ(file.read(8, kLimit).value(), "");
  EXPECT_EQ(file.read(100, kLimit).value(), "");
}

TEST_F(JournalFileTest, IsAnotherVersionWithEveryRecord) {
  JournalFile file = write_and_open("one\n");
  const FileVersion before = file.version().value();
  ASSERT_TRUE(append(file, folder(), 4, "two\n").ok());
  EXPECT_FALSE(file.version().value() == before);
  EXPECT_EQ(file.version().value().inode, before.inode);
}

TEST_F(JournalFileTest, ReadsNoMoreThanItsLimit) {
  JournalFile file = write_and_open(std::string(101, 'x'));
  EXPECT_EQ(file.read(0, 100).error().errno_value, EFBIG);
  EXPECT_EQ(file.read(1, 100).value().size(), 100u);
}

TEST_F(JournalFileTest, IsNotThereWhereThereIsNoOrdinaryFile) {
  EXPECT_FALSE(JournalFile::open(folder(), "journal").value());
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(JournalFile::open(folder(), "folder").error().errno_value, EISDIR);
  std::filesystem::create_symlink("/etc/passwd", path("link"));
  EXPECT_EQ(JournalFile::open(folder(), "link").error().errno_value, ELOOP);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(JournalFile::open(folder(), "pipe").error().errno_value, ENXIO);
}

TEST_F(JournalFileTest, AppendsNothingWhereSomebodyHasAppendedMeanwhile) {
  JournalFile file = write_and_open("one\n");
  std::ofstream(path(), std::ios::app) << "other";
  EXPECT_EQ(append(file, folder(), 4, "two\n").error().errno_value, ESTALE);
  EXPECT_EQ(file.read(0, kLimit).value(), "one\nother");
}

TEST_F(JournalFileTest, AppendsNothingToAFileThatHasLostItsName) {
  JournalFile file = write_and_open("one\n");
  std::ofstream(path("next")) << "one\n";
  std::filesystem::rename(path("next"), path());
  EXPECT_EQ(append(file, folder(), 4, "two\n").error().errno_value, ESTALE);
  std::filesystem::remove(path());
  EXPECT_EQ(append(file, folder(), 4, "two\n").error().errno_value, ENOENT);
  EXPECT_EQ(file.read(0, kLimit).value(), "one\n");
}

TEST_F(JournalFileTest, IsAsLongAsBeforeWhereARecordDoesNotFit) {
  JournalFile file = write_and_open("one\n");
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  // Half of the record fits.
  const struct rlimit limit = {6, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  Result<Done> appended = append(file, folder(), 4, "two\n");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(appended.error().errno_value, EFBIG);
  EXPECT_EQ(file.read(0, kLimit).value(), "one\n");
}

TEST_F(JournalFileTest, LosesWhatWasNotFinished) {
  JournalFile file = write_and_open("one\ntw");
  ASSERT_TRUE(file.cut(folder(), 4).ok());
  ASSERT_TRUE(append(file, folder(), 4, "two\n").ok());
  EXPECT_EQ(file.read(0, kLimit).value(), "one\ntwo\n");
}

TEST_F(JournalFileTest, KeepsACopyInStepThatWasInStep) {
  std::ofstream(path("copy")) << "one\n";
  append_to_copy(folder(), "copy", 4, "two\n");
  EXPECT_EQ(folder().read("copy", kLimit).value(), "one\ntwo\n");
  append_to_copy(folder(), "copy", 4, "three\n");
  EXPECT_EQ(folder().read("copy", kLimit).value(), "one\ntwo\n");
  append_to_copy(folder(), "none", 0, "one\n");
  EXPECT_FALSE(folder().version("none").value());
}

// A journal on a file system of memory, and a witness that has looked at it and its name.
class JournalWitnessTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << "there is no file system of memory";
    temporary_.emplace("/dev/shm");
    std::ofstream(path()) << "one\n";
    folder_.emplace(Folder::open(temporary_->path(), {}).value());
    file_.emplace(std::move(*JournalFile::open(*folder_, "journal").value()));
    look();
  }
  std::string path(const std::string& name = "journal") const { return temporary_->path() + "/" + name; }
  // Until the clock has gone on since the last change.
  void look() {
    while (!witness_.is_untouched(*file_)) witness_.confirm();
  }

  std::optional<TemporaryFolder> temporary_;
  std::optional<Folder> folder_;
  std::optional<JournalFile> file_;
  JournalWitness witness_;
};

TEST_F(JournalWitnessTest, KnowsAFileThatNothingHasHappenedTo) {
  EXPECT_TRUE(witness_.is_untouched(*file_));
  std::ofstream(path("another")) << "two\n";
  (void)file_->read(0, kLimit);
  EXPECT_TRUE(witness_.is_untouched(*file_));
}

TEST_F(JournalWitnessTest, SeesWhatHappensToTheFileAndToItsName) {
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"appended", [&] { std::ofstream(path(), std::ios::app) << "two\n"; }},
      {"as long", [&] { std::ofstream(path(), std::ios::in) << "six\n"; }},
      {"cut", [&] { std::filesystem::resize_file(path(), 1); }},
      {"moved", [&] { std::filesystem::rename(path(), path("away")); }},
      {"moved back", [&] { std::filesystem::rename(path("away"), path()); }},
      {"linked", [&] { std::filesystem::create_hard_link(path(), path("link")); }},
      {"replaced",
       [&] {
         std::ofstream(path("new")) << "one\n";
         std::filesystem::rename(path("new"), path());
       }},
      {"removed", [&] { std::filesystem::remove(path("link")); }},
  };
  for (const auto& [what, change] : changes) {
    change();
    EXPECT_FALSE(witness_.is_untouched(*file_)) << what;
    look();
  }
}

TEST_F(JournalWitnessTest, DoesNotRelyOnTheTimeOfAChangeThatIsStillGoingOn) {
  std::ofstream(path(), std::ios::app) << "two\n";
  struct timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  struct stat s;
  ASSERT_EQ(stat(path().c_str(), &s), 0);
  if (std::pair(s.st_ctim.tv_sec, s.st_ctim.tv_nsec) < std::pair(now.tv_sec, now.tv_nsec))
    GTEST_SKIP() << "the clock has gone on";
  EXPECT_FALSE(witness_.is_untouched(*file_));
  witness_.confirm();
  EXPECT_FALSE(witness_.is_untouched(*file_));
}

TEST_F(JournalFileTest, IsNotReliedOnWhereItsFileSystemMayBeShared) {
  // Files of procfs have no times that mean anything.
  Folder folder = Folder::open("/proc/" + std::to_string(getpid()), {}).value();
  EXPECT_FALSE(folder.is_local());
  EXPECT_FALSE(JournalFile::open(folder, "status").value()->time_step_ns());
}

}  // namespace
}  // namespace numalign
