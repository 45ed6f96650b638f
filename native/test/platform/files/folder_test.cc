#include "platform/files/folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace numalign {
namespace {

using test::TemporaryFolder;

Folder open_or_die(const std::string& path, const FolderOptions& options = {}) {
  Result<Folder> folder = Folder::open(path, options);
  EXPECT_TRUE(folder.ok()) << folder.error().message;
  return std::move(folder).value();
}

std::string read_or_die(const Folder& folder, const std::string& name) {
  Result<std::optional<std::string>> bytes = folder.read(name, 1 << 20);
  EXPECT_TRUE(bytes.ok() && bytes.value());
  return *bytes.value();
}

TEST(Folder, LeavesNothingBesideAFileThatItReplaces) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path());
  ASSERT_TRUE(folder.replace_durably("state", "one", 1).ok());
  ASSERT_TRUE(folder.replace_durably("state", std::string(100'000, '2'), 2).ok());
  EXPECT_EQ(read_or_die(folder, "state"), std::string(100'000, '2'));
  EXPECT_EQ(folder.list().value().size(), 1u);
}

TEST(Folder, MakesFilesThatNobodyButTheirOwnerMayWriteWhereItIsTold) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path() + "/shared", {.create = true, .group = {}, .mode = 0770});
  Folder own = folder.with_own_files().value();
  ASSERT_TRUE(folder.replace("everybodys", "one").ok());
  ASSERT_TRUE(own.replace("mine", "two").ok());
  EXPECT_EQ(folder.read_found("everybodys", 100).value()->mode, 0660u);
  EXPECT_EQ(folder.read_found("mine", 100).value()->mode, 0640u);
}

TEST(Folder, TellsWhoseAFileIsAndHowManyNamesItHas) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path());
  ASSERT_TRUE(folder.replace("one", "text").ok());
  ASSERT_EQ(link((temporary.path() + "/one").c_str(), (temporary.path() + "/two").c_str()), 0);
  const FoundFile found = folder.read_found("two", 100).value().value();
  EXPECT_EQ(found.bytes, "text");
  EXPECT_EQ(found.user, geteuid());
  EXPECT_EQ(found.links, 2u);
  EXPECT_FALSE(folder.read_found("three", 100).value());
}

TEST(Folder, LeavesTheModeOfAFileThatHasASecondName) {
  TemporaryFolder temporary;
  const std::string elsewhere = temporary.path() + "/elsewhere";
  std::ofstream(elsewhere) << "secret";
  ASSERT_EQ(chmod(elsewhere.c_str(), 0600), 0);
  Folder folder = open_or_die(temporary.path() + "/shared", {.create = true, .group = {}, .mode = 0770});
  ASSERT_EQ(link(elsewhere.c_str(), (temporary.path() + "/shared/lock").c_str()), 0);
  ASSERT_TRUE(folder.open_file("lock", true, false).ok());
  EXPECT_EQ(folder.read_found("lock", 100).value()->mode, 0600u);
}

TEST(Folder, OverwritesWhatACrashedReplacementLeft) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path());
  ASSERT_TRUE(folder.replace_durably("state", "one", 4).ok());
  std::ofstream(temporary.path() + "/state.new") << "half of";
  ASSERT_TRUE(folder.replace_durably("state", "two", 5).ok());
  EXPECT_EQ(read_or_die(folder, "state"), "two");
  EXPECT_EQ(folder.list().value().size(), 1u);
}

TEST(Folder, ReplacesAFileWholeOverWhatACrashLeft) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path());
  std::ofstream(temporary.path() + "/owner.new") << "half of";
  ASSERT_TRUE(folder.replace("owner", "one").ok());
  ASSERT_TRUE(folder.replace("owner", "two").ok());
  EXPECT_EQ(read_or_die(folder, "owner"), "two");
  EXPECT_EQ(folder.list().value().size(), 1u);
}

TEST(Folder, MovesWhateverHasTheNameIntoAnother) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path());
  FolderOptions create;
  create.create = true;
  Folder aside = std::move(folder.open_child("aside", create)).value();
  std::filesystem::create_symlink("nowhere", temporary.path() + "/link");
  std::filesystem::create_directories(temporary.path() + "/full/folder");
  ASSERT_TRUE(folder.move("link", aside, "a link").ok());
  ASSERT_TRUE(folder.move("full", aside, "a folder").ok());
  EXPECT_EQ(folder.list().value().size(), 1u);
  EXPECT_EQ(aside.list().value().size(), 2u);
  EXPECT_EQ(folder.move("nothing", aside, "nothing").error().errno_value, ENOENT);
}

TEST(Folder, GivesEveryVersionOfAFileAnotherMark) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path());
  EXPECT_FALSE(folder.version("state").value());
  ASSERT_TRUE(folder.replace_durably("state", "same", 6).ok());
  FileVersion first = *folder.version("state").value();
  EXPECT_EQ(*folder.version("state").value(), first);
  ASSERT_TRUE(folder.replace_durably("state", "same", 7).ok());
  FileVersion second = *folder.version("state").value();
  EXPECT_FALSE(second == first);
  EXPECT_EQ(second.modified_ns % 1'000'000'000 - first.modified_ns % 1'000'000'000, 1)
      << "by the stamp alone";
}

TEST(Folder, FollowsNoLink) {
  TemporaryFolder temporary;
  std::filesystem::create_directory(temporary.path() + "/real");
  std::filesystem::create_directory_symlink("real", temporary.path() + "/link");
  std::ofstream(temporary.path() + "/real/secret") << "secret";
  std::filesystem::create_symlink("secret", temporary.path() + "/real/alias");
  Result<Folder> link = Folder::open(temporary.path() + "/link", {});
  ASSERT_FALSE(link.ok());
  EXPECT_TRUE(link.error().errno_value == ELOOP || link.error().errno_value == ENOTDIR);
  Folder folder = open_or_die(temporary.path() + "/real");
  EXPECT_EQ(folder.read("alias", 100).error().errno_value, ELOOP);
  EXPECT_EQ(folder.open_file("alias", false, false).error().errno_value, ELOOP);
}

TEST(Folder, GivesNewFilesTheModeThatItHasItselfWhateverTheUmask) {
  TemporaryFolder temporary;
  for (const unsigned mode : {02770u, 0700u}) {
    mode_t before = umask(0777);
    FolderOptions options;
    options.create = true;
    options.mode = mode;
    const std::string path = temporary.path() + "/" + std::to_string(mode);
    Folder folder = open_or_die(path, options);
    EXPECT_EQ(folder.owner().value().mode, mode);
    ASSERT_TRUE(folder.replace_durably("state", "x", 8).ok());
    umask(before);
    struct stat s;
    ASSERT_EQ(stat((path + "/state").c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 07777u, mode & 0660u);
  }
}

TEST(Folder, MakesAFolderAgainThatItsMakerHasLeftBeforeItWasDone) {
  TemporaryFolder temporary;
  ASSERT_EQ(mkdir((temporary.path() + "/shared.new").c_str(), 0700), 0);
  Folder shared = open_or_die(temporary.path() + "/shared", {.create = true, .group = {}, .mode = 02770});
  EXPECT_EQ(shared.owner().value().mode, 02770u);
  EXPECT_FALSE(std::filesystem::exists(temporary.path() + "/shared.new"));
}

TEST(Folder, IsOneAndTheSameForProcessesThatMakeItAtTheSameTime) {
  TemporaryFolder temporary;
  const FolderOptions options{.create = true, .group = {}, .mode = 02770};
  std::vector<pid_t> children;
  for (int i = 0; i < 8; i++) {
    pid_t child = fork();
    if (child == 0) {
      for (int round = 0; round < 50; round++) {
        Result<Folder> folder = Folder::open(temporary.path() + "/" + std::to_string(round), options);
        if (!folder.ok() || !folder.value().is_current()) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (int round = 0; round < 50; round++) {
    Folder folder = open_or_die(temporary.path() + "/" + std::to_string(round));
    EXPECT_EQ(folder.owner().value().mode, 02770u);
  }
  EXPECT_EQ(open_or_die(temporary.path()).list().value().size(), 50u);
}

TEST(Folder, MakesAFileThatItsGroupCanUseAfterAMakerHasDied) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path() + "/here", {.create = true, .group = {}, .mode = 02770});
  const std::string left = temporary.path() + "/here/lock.new";
  ASSERT_EQ(close(open(left.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)), 0);
  UniqueFd file = std::move(folder.open_file("lock", true, false)).value();
  struct stat s;
  ASSERT_EQ(fstat(file.get(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0660u);
  EXPECT_EQ(folder.list().value(), std::vector<std::string>{"lock"});
}

TEST(Folder, HasOneAndTheSameFileForProcessesThatMakeItAtTheSameTime) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path(), {.create = true, .group = {}, .mode = 0700});
  std::vector<pid_t> children;
  for (int i = 0; i < 8; i++) {
    pid_t child = fork();
    if (child == 0) {
      for (int round = 0; round < 50; round++) {
        const std::string name = std::to_string(round);
        Result<UniqueFd> file = folder.open_file(name, true, false);
        if (!file.ok()) _exit(1);
        Result<std::optional<FileVersion>> there = folder.version(name);
        struct stat s;
        if (fstat(file.value().get(), &s) != 0 || !there.ok() || there.value()->inode != s.st_ino) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(folder.list().value().size(), 50u);
}

TEST(Folder, SaysWhenItsPathLeadsElsewhere) {
  TemporaryFolder temporary;
  FolderOptions create;
  create.create = true;
  Folder folder = open_or_die(temporary.path() + "/here", create);
  EXPECT_TRUE(folder.is_current());
  std::filesystem::remove(temporary.path() + "/here");
  EXPECT_FALSE(folder.is_current());
  Folder again = open_or_die(temporary.path() + "/here", create);
  EXPECT_FALSE(folder.is_current());
  EXPECT_TRUE(again.is_current());
}

TEST(Folder, OpensOrdinaryFilesOnly) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path());
  ASSERT_EQ(mkfifo((temporary.path() + "/pipe").c_str(), 0600), 0);
  ASSERT_EQ(mkdir((temporary.path() + "/folder").c_str(), 0700), 0);
  for (const auto& [name, expected] : {std::pair("pipe", ENXIO), std::pair("folder", EISDIR)}) {
    EXPECT_EQ(folder.read(name, 100).error().errno_value, expected);
    EXPECT_EQ(folder.open_file(name, true, false).error().errno_value, expected);
    EXPECT_EQ(folder.open_to_look(name).error().errno_value, expected);
  }
}

TEST(Folder, RefusesAFileAboveTheLimit) {
  TemporaryFolder temporary;
  std::ofstream(temporary.path() + "/large") << std::string(101, 'x');
  Folder folder = open_or_die(temporary.path());
  EXPECT_EQ(folder.read("large", 100).error().errno_value, EFBIG);
  EXPECT_EQ(folder.read("large", 101).value()->size(), 101u);
  EXPECT_FALSE(folder.read("nothing", 100).value());
}

TEST(Folder, KeepsTheOldFileWhereTheNewOneCannotBeWritten) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path());
  ASSERT_TRUE(folder.replace_durably("state", "old", 9).ok());
  // A folder where the new file should go cannot be removed as a file.
  std::filesystem::create_directory(temporary.path() + "/state.new");
  EXPECT_FALSE(folder.replace_durably("state", "new", 10).ok());
  EXPECT_EQ(read_or_die(folder, "state"), "old");
}

TEST(Folder, ReplacesNothingWhereItMayNotGoOn) {
  TemporaryFolder temporary;
  Folder folder = open_or_die(temporary.path());
  ASSERT_TRUE(folder.replace_durably("state", "first", 1).ok());
  ASSERT_TRUE(folder.replace_durably("state", "second", 2).ok());
  auto refuse = [] { return Result<Done>(syscall_error("test", "not now", ESTALE)); };
  EXPECT_EQ(folder.replace_durably("state", "third", 3, refuse).error().errno_value, ESTALE);
  EXPECT_EQ(read_or_die(folder, "state"), "second");
}

}  // namespace
}  // namespace numalign
