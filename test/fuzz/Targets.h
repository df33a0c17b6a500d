// Targets that stand in a file of their own.
#pragma once

#include "test/fuzz/Fuzz.h"

namespace weft::fuzz {

std::string lspStream(const std::string &input);
std::vector<std::string> lspStreamSeeds();
std::string lspText(const std::string &input);

} // namespace weft::fuzz
