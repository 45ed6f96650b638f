// CompiledCode: what stands before code that V8 has compiled, in a file of it. V8 compares only the length
// of the source with that which it has compiled, and stack traces have the path that it was compiled with.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace numalign {

// A checksum of a source, for numbers of JavaScript.
uint32_t sum_of_source(std::string_view text);

// Checksums. V8 would copy code that does not begin at a multiple of 8.
struct CodeHead {
  uint32_t code;
  uint32_t source;
  uint32_t path;
  uint32_t spare = 0;
  friend bool operator==(const CodeHead&, const CodeHead&) = default;
};

// `path`: of the file with the source. `source`: of sum_of_source().
CodeHead head_of(std::string_view code, std::string_view path, uint32_t source);

// A file of compiled code.
std::string with_head(std::string_view code, std::string_view path, uint32_t source);

}  // namespace numalign
