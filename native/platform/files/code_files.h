// Modules and the code that V8 compiled of them, as Node's own loader would take longer to read.
// Thread-safety: the functions may be called from any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace numalign {

// The text of a module in the function around it.
struct SourceText {
  std::unique_ptr<char[]> text;
  size_t size;
  uint32_t sum;  // sum_of_source()
};

// Reads an open file to its end. nullopt if it cannot be read, has anything but ASCII, or changes.
std::optional<SourceText> read_source(int fd, std::string_view before, std::string_view after);

// True if only root or this user can write to it.
bool is_trusted(const struct stat& status);

// True if only root or this user can write to the folder: its files are trusted as code itself is.
bool is_trusted_folder(const std::string& path);

// Reads the compiled code in the file `name`, to `room`, and returns its size. nullopt unless the file is an
// ordinary one in a trusted folder, that only root or this user can write to, fits, is undamaged, and was
// compiled from the source with this sum at `path`.
std::optional<size_t> read_code(const std::string& name, std::string_view path, uint32_t source,
                                std::span<char> room);

struct CompiledModule {
  SourceText source;
  size_t code_size;
};

// Reads the module in the file `path`, and the code of it that `folder` has, to `room`. nullopt unless there
// is both.
std::optional<CompiledModule> read_module(const std::string& path, const std::string& folder,
                                          std::string_view before, std::string_view after,
                                          std::span<char> room);

}  // namespace numalign
