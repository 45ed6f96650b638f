#include "platform/files/code_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "core/compiled_code.h"
#include "platform/files/unique_fd.h"
#include "support/temporary_folder.h"

namespace numalign {
namespace {

class CodeFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return temporary_.path() + "/" + name; }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    ASSERT_EQ(chmod(path(name).c_str(), 0644), 0);
  }
  std::optional<SourceText> source(const std::string& name) const {
    return read_source(UniqueFd(open(path(name).c_str(), O_RDONLY)).get(), "(before", "after)");
  }
  // The code in a file, of the source with the sum 7 at /a.
  std::optional<std::string> code(const std::string& name = "code", size_t room = 100) const {
    std::vector<char> bytes(room);
    const std::optional<size_t> size = read_code(path(name), "/a", 7, bytes);
    return size ? std::optional(std::string(bytes.data(), *size)) : std::nullopt;
  }

  test::TemporaryFolder temporary_;
  const std::string file_ = with_head("some code", "/a", 7);
};

TEST_F(CodeFiles, HaveTheirSourceBetweenTwoTexts) {
  write("module", "const a = 1;\n");
  const std::optional<SourceText> found = source("module");
  ASSERT_TRUE(found);
  const std::string_view text(found->text.get(), found->size);
  EXPECT_EQ(text, "(beforeconst a = 1;\nafter)");
  EXPECT_EQ(found->sum, sum_of_source(text));
  write("empty", "");
  EXPECT_EQ(source("empty")->size, 13u);
}

TEST_F(CodeFiles, HaveNoSourceThatIsNotAsciiOrNoFile) {
  for (const char* text : {"const a = '\xc3\xa4';", "\x80", "a\xff"}) {
    write("module", text);
    EXPECT_FALSE(source("module")) << text;
  }
  EXPECT_FALSE(source("."));
  EXPECT_FALSE(source("missing"));
}

TEST_F(CodeFiles, HaveTheCodeOfTheirSourceAlone) {
  write("code", file_);
  EXPECT_EQ(code(), "some code");
  EXPECT_EQ(code("code", 9), "some code");
  EXPECT_EQ(code("code", 8), std::nullopt);
  std::vector<char> room(100);
  EXPECT_FALSE(read_code(path("code"), "/b", 7, room));
  EXPECT_FALSE(read_code(path("code"), "/a", 8, room));
  EXPECT_FALSE(read_code(path("missing"), "/a", 7, room));
  EXPECT_FALSE(read_code(temporary_.path(), "/a", 7, room));
}

TEST_F(CodeFiles, AreReadWithTheirSourceFromATrustedFolder) {
  std::filesystem::create_directory(path("compiled"));
  write("module", "1");
  const std::string at = path("module");
  std::vector<char> room(100);
  const auto module = [&] { return read_module(at, path("compiled"), "(", ")", room); };
  EXPECT_FALSE(module());
  write("compiled/module.bin", with_head("some code", at, sum_of_source("(1)")));
  ASSERT_TRUE(module());
  EXPECT_EQ(std::string(module()->source.text.get(), module()->source.size), "(1)");
  EXPECT_EQ(std::string(room.data(), module()->code_size), "some code");
  ASSERT_EQ(chmod(path("compiled").c_str(), 0777), 0);
  EXPECT_FALSE(module());
  ASSERT_EQ(chmod(path("compiled").c_str(), 0755), 0);
  write("module", "2");
  EXPECT_FALSE(module());
  std::filesystem::remove(at);
  EXPECT_FALSE(module());
}

TEST_F(CodeFiles, HaveNoCodeIfOneByteIsAnotherOrMissing) {
  for (size_t i = 0; i < file_.size(); i++) {
    std::string damaged = file_;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    write("code", damaged);
    EXPECT_EQ(code(), std::nullopt) << i;
    write("code", std::string_view(file_).substr(0, i));
    EXPECT_EQ(code(), std::nullopt) << i;
  }
  write("code", file_ + "x");
  EXPECT_EQ(code(), std::nullopt);
}

TEST_F(CodeFiles, AreTrustedIfOnlyRootAndThisUserCanWriteToThem) {
  for (mode_t mode : {0644, 0600, 0755, 0664, 0646, 0666}) {
    const bool is_trusted = (mode & 022) == 0;
    write("code", file_);
    ASSERT_EQ(chmod(path("code").c_str(), mode), 0);
    EXPECT_EQ(code().has_value(), is_trusted) << mode;
    ASSERT_EQ(chmod(temporary_.path().c_str(), mode | 0100), 0);
    EXPECT_EQ(is_trusted_folder(temporary_.path()), is_trusted) << mode;
    ASSERT_EQ(chmod(temporary_.path().c_str(), 0700), 0);
  }
  EXPECT_FALSE(is_trusted_folder(path("missing")));
  write("code", file_);
  std::filesystem::create_symlink("code", path("link"));
  EXPECT_EQ(code("link"), std::nullopt);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(path("code").c_str(), 12345, 0), 0);
  EXPECT_EQ(code(), std::nullopt);
}

}  // namespace
}  // namespace numalign
