// A file to which records are appended.
#include "platform/files/journal_file.h"

#include <fcntl.h>
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
  TemporaryFolder temporary_;
};

TEST_F(JournalFileTest, ReadsWhatWasAppendedSinceAnOffset) {
  JournalFile file = write_and_open("one\n");
  ASSERT_TRUE(file.append(folder(), 4, "two\n").ok());
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
  ASSERT_TRUE(file.append(folder(), 4, "two\n").ok());
  EXPECT_FALSE(file.version().value() == before);
  EXPECT_EQ(file.version().value().inode, before.inode);
}

TEST_F(JournalFileTest, ShowsOthersTheHighestGenerationThatIsKnown) {
  const JournalFile file = write_and_open("one\n");
  EXPECT_EQ(file.shown(0), 0u);
  file.show(7);
  EXPECT_EQ(file.shown(0), 0u);
  const JournalFile another = std::move(*JournalFile::open(folder(), "journal").value());
  another.show(5);
  {
    const JournalFile third = std::move(*JournalFile::open(folder(), "journal").value());
    third.show(9);
    third.show(2);
    EXPECT_EQ(another.shown(6), 9u);
  }
  EXPECT_EQ(another.shown(6), 7u);
  EXPECT_EQ(another.shown(7), 7u);
  std::ofstream(path()) << "an earlier text";
  EXPECT_EQ(another.shown(5), 7u);
}

// Of another program, on the whole file or from another place.
TEST_F(JournalFileTest, TakesNoOtherLockForAGeneration) {
  const JournalFile file = write_and_open("one\n");
  for (const struct flock& other :
       {flock{F_RDLCK, SEEK_SET, 0, 0, 0}, {F_RDLCK, SEEK_SET, 3, 90, 0}, {F_WRLCK, SEEK_SET, 0, 90, 0}}) {
    UniqueFd fd(::open(path().c_str(), O_RDWR | O_CLOEXEC));
    struct flock lock = other;
    ASSERT_EQ(fcntl(fd.get(), F_OFD_SETLK, &lock), 0);
    EXPECT_EQ(file.shown(5), 5u);
  }
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
  EXPECT_EQ(file.append(folder(), 4, "two\n").error().errno_value, ESTALE);
  EXPECT_EQ(file.read(0, kLimit).value(), "one\nother");
}

TEST_F(JournalFileTest, AppendsNothingToAFileThatHasLostItsName) {
  JournalFile file = write_and_open("one\n");
  std::ofstream(path("next")) << "one\n";
  std::filesystem::rename(path("next"), path());
  EXPECT_EQ(file.append(folder(), 4, "two\n").error().errno_value, ESTALE);
  std::filesystem::remove(path());
  const int gone = file.append(folder(), 4, "two\n").error().errno_value;
  EXPECT_TRUE(gone == ENOENT || gone == ESTALE) << gone;
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
  Result<Done> appended = file.append(folder(), 4, "two\n");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(appended.error().errno_value, EFBIG);
  EXPECT_EQ(file.read(0, kLimit).value(), "one\n");
}

TEST_F(JournalFileTest, LosesWhatWasNotFinished) {
  JournalFile file = write_and_open("one\ntw");
  ASSERT_TRUE(file.cut(folder(), 4).ok());
  ASSERT_TRUE(file.append(folder(), 4, "two\n").ok());
  EXPECT_EQ(file.read(0, kLimit).value(), "one\ntwo\n");
}

TEST_F(JournalFileTest, AppendsToTheFileThatItHasOpenAndToNoOther) {
  JournalFile file = write_and_open("one\n");
  ASSERT_TRUE(file.append(folder(), 4, "two\n").ok());
  std::filesystem::rename(path(), path("moved"));
  std::ofstream(path()) << "one\ntwo\n";
  EXPECT_EQ(file.append(folder(), 8, "three\n").error().errno_value, ESTALE);
  EXPECT_EQ(file.cut(folder(), 4).error().errno_value, ESTALE);
  EXPECT_EQ(folder().read("journal", kLimit).value(), "one\ntwo\n");
  EXPECT_EQ(folder().read("moved", kLimit).value(), "one\ntwo\n");
  // By its name it can be written again.
  std::filesystem::rename(path("moved"), path());
  EXPECT_TRUE(file.append(folder(), 8, "three\n").ok());
}

TEST_F(JournalFileTest, KeepsACopyInStepThatWasInStep) {
  JournalFile file = write_and_open("one\n");
  std::ofstream(path("copy")) << "one\n";
  EXPECT_TRUE(file.append_to_copy(folder(), "copy", 4, "two\n"));
  EXPECT_TRUE(file.append_to_copy(folder(), "copy", 8, "three\n"));
  EXPECT_EQ(folder().read("copy", kLimit).value(), "one\ntwo\nthree\n");
  EXPECT_FALSE(file.append_to_copy(folder(), "copy", 4, "other\n"));
  EXPECT_EQ(folder().read("copy", kLimit).value(), "one\ntwo\nthree\n");
  EXPECT_FALSE(file.append_to_copy(folder(), "none", 0, "one\n"));
  EXPECT_FALSE(folder().version("none").value());
}

TEST_F(JournalFileTest, AppendsToTheCopyThatHasTheName) {
  JournalFile file = write_and_open("one\n");
  std::ofstream(path("copy")) << "one\n";
  EXPECT_TRUE(file.append_to_copy(folder(), "copy", 4, "two\n"));
  std::filesystem::rename(path("copy"), path("moved"));
  std::ofstream(path("copy")) << "ONE\nTWO\n";
  EXPECT_TRUE(file.append_to_copy(folder(), "copy", 8, "three\n"));
  EXPECT_EQ(folder().read("copy", kLimit).value(), "ONE\nTWO\nthree\n");
  EXPECT_EQ(folder().read("moved", kLimit).value(), "one\ntwo\n");
}

TEST_F(JournalFileTest, WritesACopyOfAllThatItHas) {
  JournalFile file = write_and_open("one\n");
  ASSERT_TRUE(file.append(folder(), 4, "two\n").ok());
  std::ofstream(path("copy")) << "something else";
  ASSERT_TRUE(file.copy_to(folder(), "copy", kLimit).ok());
  EXPECT_EQ(folder().read("copy", kLimit).value(), "one\ntwo\n");
  EXPECT_EQ(file.copy_to(folder(), "copy", 7).error().errno_value, EFBIG);
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
  struct timespec now;
  struct stat s;
  do {
    std::ofstream(path(), std::ios::app) << "two\n";
    EXPECT_FALSE(witness_.is_untouched(*file_));
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    ASSERT_EQ(stat(path().c_str(), &s), 0);
    // Once more if the clock has gone on.
  } while (std::pair(s.st_ctim.tv_sec, s.st_ctim.tv_nsec) < std::pair(now.tv_sec, now.tv_nsec));
  witness_.confirm();
  EXPECT_FALSE(witness_.is_untouched(*file_));
}

TEST_F(JournalWitnessTest, FindsWhatTheNameLeadsToUntilTheCallerKnowsIt) {
  const auto look = [&] { return witness_.look(*file_, *folder_).value(); };
  EXPECT_FALSE(look().is_known);
  EXPECT_EQ(look().version, file_->version().value());
  witness_.know();
  // By the file alone, too.
  for (int i = 0; i < 3; i++) {
    EXPECT_TRUE(look().is_known);
    EXPECT_EQ(look().version, file_->version().value());
    this->look();
  }
  std::ofstream(path(), std::ios::app) << "two\n";
  EXPECT_FALSE(look().is_known);
  EXPECT_FALSE(look().is_known);
  EXPECT_EQ(look().version->size, 8u);
  witness_.know();
  EXPECT_TRUE(look().is_known);
  std::filesystem::remove(path());
  EXPECT_FALSE(look().version);
  EXPECT_FALSE(look().is_known);
}

// The version of an earlier file, which another program has put back with its time.
TEST_F(JournalWitnessTest, DoesNotKnowWhatTheCallerHasMovedOnFrom) {
  const auto look = [&] { return witness_.look(*file_, *folder_).value(); };
  const FileVersion before = *look().version;
  struct stat s;
  ASSERT_EQ(stat(path().c_str(), &s), 0);
  const struct timespec times[2] = {{0, UTIME_OMIT}, s.st_mtim};
  const std::function<void()> news[] = {
      [&] {
        witness_.note({before.inode, 8, 1});
      },
      [&] { witness_.forget(); },
      [&] { (void)witness_.note_own(*file_, 8, file_time_ns()); },
      [&] { (void)look(); },
  };
  for (const auto& learn : news) {
    (void)look();
    witness_.know();
    EXPECT_TRUE(look().is_known);
    std::ofstream(path(), std::ios::app) << "two\n";
    learn();
    std::filesystem::resize_file(path(), 4);
    ASSERT_EQ(utimensat(AT_FDCWD, path().c_str(), times, 0), 0);
    EXPECT_EQ(look().version, before);
    EXPECT_FALSE(look().is_known);
  }
}

TEST_F(JournalWitnessTest, TakesTheTimeOfItsOwnAppendForOneTime) {
  const int64_t from = file_time_ns();
  ASSERT_TRUE(file_->append(*folder_, 4, "two\n").ok());
  const FileVersion own = witness_.note_own(*file_, 8, from);
  EXPECT_EQ(own.size, 8u);
  EXPECT_EQ(own.inode, file_->inode());
  EXPECT_EQ(witness_.look(*file_, *folder_).value().version, own);
  EXPECT_EQ(witness_.note(file_->version().value()), own);
  // Whatever has another length, another time or another inode is something else.
  for (FileVersion other : {FileVersion{own.inode, 9, own.modified_ns},
                            {own.inode, 8, own.modified_ns + 1},
                            {own.inode, 8, from - 1},
                            {own.inode + 1, 8, own.modified_ns}})
    EXPECT_EQ(witness_.note(other), other);
  struct timespec now;
  do clock_gettime(CLOCK_REALTIME_COARSE, &now);
  while (now.tv_sec * 1'000'000'000LL + now.tv_nsec <= own.modified_ns);
  std::ofstream(path(), std::ios::in) << "six\n";
  EXPECT_NE(witness_.look(*file_, *folder_).value().version, own);
}

TEST_F(JournalFileTest, IsNotReliedOnWhereItsFileSystemMayBeShared) {
  // Files of procfs have no times that mean anything.
  Folder folder = Folder::open("/proc/" + std::to_string(getpid()), {}).value();
  EXPECT_FALSE(folder.is_local());
  EXPECT_FALSE(JournalFile::open(folder, "status").value()->time_step_ns());
}

}  // namespace
}  // namespace numalign
