#include "platform/files/cpu_list_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_folder.h"

namespace numalign {
namespace {

using test::TemporaryFolder;

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(CpuListFile, TellsWhatTheFileSaysAtEachReading) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/online";
  write(path, "0-3,8\n");
  CpuListFile file(path);
  EXPECT_EQ(file.read().value(), (CpuSet{0, 1, 2, 3, 8}));
  write(path, "0-2,8\n");
  EXPECT_EQ(file.read().value(), (CpuSet{0, 1, 2, 8}));
  write(path, "\n");
  EXPECT_EQ(file.read().value(), CpuSet());
}

TEST(CpuListFile, TellsWhetherItHasChanged) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/online";
  write(path, "0-3\n");
  CpuListFile file(path);
  EXPECT_TRUE(file.has_changed().value());
  EXPECT_FALSE(file.has_changed().value());
  write(path, "0-2\n");
  EXPECT_TRUE(file.has_changed().value());
  EXPECT_FALSE(file.has_changed().value());
  EXPECT_EQ(file.cpus(), (CpuSet{0, 1, 2}));
}

TEST(CpuListFile, LooksAgainForOneThatWasNotThere) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/isolated";
  CpuListFile file(path);
  EXPECT_EQ(file.read().error().errno_value, ENOENT);
  write(path, "1\n");
  EXPECT_EQ(file.read().value(), CpuSet{1});
}

TEST(CpuListFile, IsReadAgainAfterItHadNoList) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/nohz_full";
  write(path, "1\n");
  CpuListFile file(path);
  EXPECT_TRUE(file.has_changed().value());
  write(path, "  (null)\n");
  EXPECT_EQ(file.has_changed().error().code, ErrorCode::kInvalidList);
  write(path, "1\n");
  EXPECT_TRUE(file.has_changed().value());
}

// The kernel writes it again for each reading from the beginning.
TEST(CpuListFile, ReadsWhatTheKernelShows) {
  CpuListFile file("/sys/devices/system/cpu/online");
  if (!file.read().ok()) GTEST_SKIP() << "hidden here";
  EXPECT_FALSE(file.has_changed().value());
  EXPECT_FALSE(file.cpus().empty());
}

}  // namespace
}  // namespace numalign
