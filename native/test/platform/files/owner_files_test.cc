#include "platform/files/owner_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/crc32.h"
#include "platform/files/file_lock.h"
#include "support/temporary_folder.h"

namespace numalign {
namespace {

using test::TemporaryFolder;
using Names = std::vector<std::string>;

constexpr size_t kLimit = 1000;

std::string file_of(int generation, const std::string& more = "") {
  return "{\"generation\":" + std::to_string(generation) + "}\n" + more + "{\"lines\":\"1\"}\n";
}

class OwnerFiles : public ::testing::Test {
 protected:
  OwnerFiles() : folder_(std::move(Folder::open(temporary_.path(), {})).value()) {}

  // A living owner.
  UniqueFd own(const std::string& name, const std::string& text, bool is_sealed = true) {
    UniqueFd fd = std::move(create_locked_file(folder_, name, text)).value();
    if (is_sealed) {
      EXPECT_TRUE(seal(fd.get(), crc32(text), 1).ok());
    }
    return fd;
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(temporary_.path() + "/" + name) << text;
  }
  Names names(std::optional<uint64_t> generation = {}) {
    Names names = std::move(survey_owners(folder_, kLimit, generation)).value().names;
    std::ranges::sort(names);
    return names;
  }

  TemporaryFolder temporary_;
  Folder folder_;
};

TEST_F(OwnerFiles, AreLookedAtAloneIfTheyAreGivenAndNamedIfTheyAreMissing) {
  const UniqueFd living = own("living", file_of(1));
  own("ended", file_of(1));
  write("ordinary", "");
  const OwnerSurvey survey = survey_owners(folder_, kLimit, {}, Names{"ended", "living", "missing"}).value();
  EXPECT_EQ(survey.names, (Names{"ended", "missing"}));
  EXPECT_EQ(survey.sum, sum_of_files(folder_, Names{"ended", "living"}).value());
}

TEST_F(OwnerFiles, WithoutALockAreNamed) {
  const UniqueFd living = own("living", file_of(1)), unsealed = own("unsealed", file_of(1), false);
  own("ended", file_of(1));
  write("ordinary", "");
  ASSERT_EQ(mkdir((temporary_.path() + "/folder").c_str(), 0700), 0);
  ASSERT_EQ(symlink("living", (temporary_.path() + "/link").c_str()), 0);
  const UniqueFd large = own("large", std::string(kLimit + 1, 'a'));
  EXPECT_EQ(names(), (Names{"ended", "folder", "large", "link", "ordinary"}));
}

TEST_F(OwnerFiles, AreNamedIfTheyMayAddToAState) {
  const UniqueFd earlier = own("earlier", file_of(4)), now = own("now", file_of(5));
  const UniqueFd claims = own("claims", file_of(5, "{\"generation\":5,\"pod\":{}}\n"));
  const UniqueFd later = own("later", file_of(6)), unsealed = own("unsealed", file_of(4), false);
  const UniqueFd changed = own("changed", file_of(4));
  write("changed", file_of(3));
  write("ended", file_of(4));
  EXPECT_EQ(names(5), (Names{"changed", "claims", "ended", "later", "unsealed"}));
  EXPECT_EQ(names(7), (Names{"changed", "ended", "unsealed"}));
}

TEST_F(OwnerFiles, GrowByLinesInPlaceOfTheLastAndAreSealedAgain) {
  const UniqueFd file = own("living", "one\nend\n");
  const auto text = [&] { return folder_.read("living", kLimit).value().value(); };
  const auto is_sealed = [&] {
    const UniqueFd look = std::move(folder_.open_to_look("living")).value();
    return sealed_checksum(look.get()).value() == crc32(text());
  };
  LockRange last;
  uint32_t checksum = crc32("one\n");
  uint64_t at = 4;
  // Lengths of seals reach over those of the seals before, or do not.
  for (uint64_t generation :
       {uint64_t{1}, uint64_t{1} << 40, uint64_t{5}, uint64_t{6}, uint64_t{1} << 50, uint64_t{7}}) {
    const std::string line = std::to_string(generation) + "\n";
    const auto appended = append_sealed(file.get(), {at, line, "END\n", checksum, generation}, &last).value();
    ASSERT_TRUE(appended);
    checksum = *appended;
    at += line.size();
    EXPECT_TRUE(text().ends_with(line + "END\n"));
    EXPECT_EQ(crc32("END\n", checksum), crc32(text()));
    EXPECT_TRUE(is_sealed()) << generation;
  }
  // Of another length, it is left alone.
  ASSERT_TRUE(cut(file.get(), at).ok());
  const std::string before = text();
  EXPECT_FALSE(append_sealed(file.get(), {at, "new\n", "end\n", checksum, 8}, &last).value());
  EXPECT_EQ(text(), before);
}

TEST_F(OwnerFiles, HaveASumOfTheirNamesAndInodes) {
  const auto sum = [&] { return sum_of_files(folder_, {}).value(); };
  EXPECT_EQ(sum(), 0u);
  const UniqueFd living = own("living", file_of(1));
  write("ordinary", "");
  ASSERT_EQ(symlink("living", (temporary_.path() + "/link").c_str()), 0);
  const uint32_t before = sum();
  for (std::optional<uint64_t> generation : {std::optional<uint64_t>(), std::optional<uint64_t>(1)})
    EXPECT_EQ(survey_owners(folder_, kLimit, generation).value().sum, before);
  EXPECT_EQ(sum_of_files(folder_, Names{"link", "nothing", "ordinary", "living"}).value(), before);
  EXPECT_NE(sum_of_files(folder_, Names{"ordinary", "living"}).value(), before);
  write("ordinary", "changed");
  EXPECT_EQ(sum(), before);
  ASSERT_TRUE(folder_.replace("ordinary", "replaced").ok());
  EXPECT_NE(sum(), before);
}

}  // namespace
}  // namespace numalign
