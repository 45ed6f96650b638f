#include "platform/files/code_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "core/compiled_code.h"
#include "platform/files/unique_fd.h"

namespace numalign {
namespace {

constexpr off_t kMostBytes = 64 << 20;

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char each : text) all |= static_cast<unsigned char>(each);
  return all < 0x80;
}

}  // namespace

std::optional<SourceText> read_source(int fd, std::string_view before, std::string_view after) {
  struct stat s;
  if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size > kMostBytes) return std::nullopt;
  const auto length = static_cast<size_t>(s.st_size);
  const size_t size = before.size() + length + after.size();
  std::unique_ptr<char[]> text(new char[size]);
  char* const source = std::ranges::copy(before, text.get()).out;
  if (pread(fd, source, length, 0) != s.st_size) return std::nullopt;
  std::ranges::copy(after, source + length);
  const std::string_view whole(text.get(), size);
  if (!is_ascii(whole)) return std::nullopt;
  return SourceText{std::move(text), size, sum_of_source(whole)};
}

bool is_trusted(const struct stat& status) {
  return (status.st_uid == 0 || status.st_uid == geteuid()) && (status.st_mode & 022) == 0;
}

bool is_trusted_folder(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0 && is_trusted(s);
}

std::optional<size_t> read_code(const std::string& name, std::string_view path, uint32_t source,
                                std::span<char> room) {
  if (!is_trusted_folder(name.substr(0, name.rfind('/')))) return std::nullopt;
  const UniqueFd file(open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat s;
  if (!file.valid() || fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode) || !is_trusted(s))
    return std::nullopt;
  CodeHead head{};
  if (s.st_size < static_cast<off_t>(sizeof head)) return std::nullopt;
  const size_t size = static_cast<size_t>(s.st_size) - sizeof head;
  if (size > room.size()) return std::nullopt;
  const iovec parts[] = {{&head, sizeof head}, {room.data(), size}};
  if (preadv(file.get(), parts, 2, 0) != s.st_size) return std::nullopt;
  return head == head_of({room.data(), size}, path, source) ? std::optional(size) : std::nullopt;
}

std::optional<CompiledModule> read_module(const std::string& path, const std::string& folder,
                                          std::string_view before, std::string_view after,
                                          std::span<char> room) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::optional<SourceText> source = read_source(file.get(), before, after);
  if (!source) return std::nullopt;
  const std::string name = folder + path.substr(path.rfind('/')) + ".bin";
  const std::optional<size_t> size = read_code(name, path, source->sum, room);
  if (!size) return std::nullopt;
  return CompiledModule{std::move(*source), *size};
}

}  // namespace numalign
