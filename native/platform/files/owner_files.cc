#include "platform/files/owner_files.h"

#include <sys/stat.h>

#include "core/crc32.h"
#include "core/owner_lines.h"
#include "platform/files/file_lock.h"

namespace numalign {
namespace {

// The inodes of a copy often differ from the originals by the same bits, which a sum of checksums would not
// show. This is the end of MurmurHash3.
uint32_t mixed(uint32_t checksum) {
  const uint32_t first = (checksum ^ checksum >> 16) * 0x85ebca6b;
  const uint32_t second = (first ^ first >> 13) * 0xc2b2ae35;
  return second ^ second >> 16;
}

uint32_t summand_of(const std::string& name, uint64_t inode) {
  return mixed(crc32(name + ' ' + std::to_string(inode)));
}

// True if the open file is sealed, thus locked, as its owner wrote it, and adds nothing to a state of this
// generation.
bool is_settled(const Folder& folder, int fd, const std::string& name, uint64_t size, uint64_t generation) {
  const Result<std::optional<uint32_t>> seal = sealed_checksum(fd);
  if (!seal.ok() || !seal.value()) return false;
  const Result<std::string> bytes = folder.read_open(fd, size, name, size);
  return bytes.ok() && crc32(bytes.value()) == *seal.value() && is_settled_at(bytes.value(), generation);
}

Result<std::vector<std::string>> names_of(const Folder& folder, const FileNames& files) {
  return files ? Result<std::vector<std::string>>(*files) : folder.list();
}

bool is_locked(int fd) {
  const Result<bool> locked = is_locked_elsewhere(fd);
  return locked.ok() && locked.value();
}

}  // namespace

Result<OwnerSurvey> survey_owners(const Folder& folder, size_t limit, std::optional<uint64_t> generation,
                                  const FileNames& files) {
  Result<std::vector<std::string>> listed = names_of(folder, files);
  if (!listed.ok()) return listed.error();
  std::vector<std::string> names = std::move(listed).value();
  OwnerSurvey survey;
  for (std::string& name : names) {
    struct stat s;
    const Result<UniqueFd> file = folder.open_to_look(name, &s);
    if (file.ok()) {
      survey.sum += summand_of(name, s.st_ino);
      const auto size = static_cast<uint64_t>(s.st_size);
      const int fd = file.value().get();
      if (size <= limit && (generation ? is_settled(folder, fd, name, size, *generation) : is_locked(fd)))
        continue;
    } else {
      const Result<uint32_t> summand = sum_of_files(folder, std::vector{name});
      if (!summand.ok()) return summand.error();
      survey.sum += summand.value();
    }
    survey.names.push_back(std::move(name));
  }
  return survey;
}

Result<std::optional<uint32_t>> append_sealed(int fd, const OwnerLines& lines, LockRange* last_seal) {
  const Result<uint64_t> size = size_of(fd);
  if (!size.ok()) return size.error();
  if (size.value() != lines.at + lines.last.size()) return std::optional<uint32_t>();
  std::string text(lines.lines);
  text += lines.last;
  if (Result<Done> written = write_at(fd, lines.at, text); !written.ok()) return written.error();
  const uint32_t checksum = crc32(lines.lines, lines.before);
  Result<Done> sealed = seal(fd, crc32(lines.last, checksum), lines.generation, last_seal);
  if (!sealed.ok()) return sealed.error();
  return std::optional(checksum);
}

Result<uint32_t> sum_of_files(const Folder& folder, const FileNames& files) {
  const Result<std::vector<std::string>> listed = names_of(folder, files);
  if (!listed.ok()) return listed.error();
  uint32_t sum = 0;
  for (const std::string& name : listed.value()) {
    const Result<std::optional<FileVersion>> version = folder.version(name);
    if (!version.ok()) return version.error();
    if (version.value()) sum += summand_of(name, version.value()->inode);
  }
  return sum;
}

}  // namespace numalign
