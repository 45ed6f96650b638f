// What hwloc would take literally in a synthetic description, whatever it costs: it stops the process by an
// assertion at some, and reads beyond its tables at others. Pure; safe to use from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace numalign {

// Why a text is no synthetic description that hwloc may be given, in words; nothing where it may. hwloc can
// refuse it all the same.
std::optional<std::string> check_synthetic(const std::string& text);

// The beginning of a text in quotes, for messages.
std::string excerpt(std::string_view text);

}  // namespace numalign
