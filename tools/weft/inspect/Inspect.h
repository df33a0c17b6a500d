//===- Inspect.h - weft inspect ---------------------------------*- C++ -*-===//
#pragma once

namespace weft {

int inspectCommand(int argc, const char **argv);

} // namespace weft
