// XmlReader: a pull reader for the XML that hwloc writes, and comments. Never expands entities,
// which no needed value contains. Returns views into the text, which must outlive the reader. Not
// for several threads at once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace numalign {

class XmlReader {
 public:
  enum class Event { kOpen, kClose, kText, kEnd };

  explicit XmlReader(std::string_view text) : text_(text) {}

  // Moves to the next tag or text; nullopt if the text is not such XML, and error() says why. After
  // kOpen, name() and attribute() describe the tag; after kText, text() does.
  std::optional<Event> next();

  std::string_view name() const { return name_; }
  std::string_view text() const { return content_; }
  std::optional<std::string_view> attribute(std::string_view name) const;
  // The number of open elements.
  size_t depth() const { return open_.size(); }

  // Sets error(), with the line.
  std::nullopt_t fail(std::string what);
  const Error& error() const { return error_; }

 private:
  struct Attribute {
    std::string_view name;
    std::string_view value;
  };

  bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }
  std::optional<Event> end();
  std::optional<Event> open();
  std::optional<Event> close();
  Event pop();
  bool skip_markup();
  bool skip_past(std::string_view terminator, const char* what);
  void skip_spaces();
  std::string_view take_name();
  bool take_attribute();

  std::string_view text_;
  size_t at_ = 0;
  std::string_view name_;
  std::string_view content_;
  std::vector<Attribute> attributes_;
  std::vector<std::string_view> open_;
  bool pending_close_ = false;
  bool seen_element_ = false;
  Error error_{ErrorCode::kHwloc, ""};
};

}  // namespace numalign
