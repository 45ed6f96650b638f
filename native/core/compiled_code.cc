#include "core/compiled_code.h"

#include "core/fingerprint.h"

namespace numalign {

uint32_t sum_of_source(std::string_view text) { return static_cast<uint32_t>(fingerprint(text) >> 32); }

CodeHead head_of(std::string_view code, std::string_view path, uint32_t source) {
  return {sum_of_source(code), source, sum_of_source(path)};
}

std::string with_head(std::string_view code, std::string_view path, uint32_t source) {
  const CodeHead head = head_of(code, path, source);
  std::string file(reinterpret_cast<const char*>(&head), sizeof head);
  file += code;
  return file;
}

}  // namespace numalign
