//===- ManualPage.cpp - weft(1) ---------------------------------------------===//

#include "tools/weft/Describe.h"

#include <sstream>

using namespace weft;

namespace {

/// Text for roff: backslashes and hyphens as themselves, no line that looks like a request.
std::string roff(const std::string &text) {
  std::string result;
  bool lineStart = true;
  for (const char c : text) {
    if (lineStart && (c == '.' || c == '\''))
      result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    lineStart = c == '\n';
  }
  return result;
}

std::string synopsis(const CommandDescription &command) {
  std::string text = "\\fBweft " + roff(command.name) + "\\fR";
  bool flags = false;
  for (const FlagDescription &flag : command.flags)
    if (flag.name.empty())
      text += " \\fI" + roff(flag.value) + "\\fR";
    else
      flags = true;
  return text + (flags ? " [\\fIflags\\fR]" : "") + "\n";
}

void addCommand(std::string &page, const CommandDescription &command) {
  page +=
      ".SS weft " + roff(command.name) + "\n" + synopsis(command) + ".PP\n" + roff(command.summary) + ".\n";
  for (const FlagDescription &flag : command.flags)
    if (!flag.name.empty())
      page += ".TP\n\\fB" + std::string(flag.name.size() == 1 ? "\\-" : "\\-\\-") + roff(flag.name) + "\\fR" +
              (flag.value.empty() ? "" : " \\fI" + roff(flag.value) + "\\fR") + "\n" + roff(flag.help) + "\n";
  if (command.examples.empty())
    return;
  page += ".PP\n.nf\n";
  std::istringstream lines(command.examples);
  for (std::string line; std::getline(lines, line);)
    page += roff(line) + "\n";
  page += ".fi\n";
}

constexpr const char *kEnvironment[][2] = {
    {"WEFT_CACHE_DIR", "compiled kernels; default $XDG_CACHE_HOME/weft, or ~/.cache/weft"},
    {"WEFT_DATA_DIR", "fetched texts and tokenizers; default $XDG_DATA_HOME/weft, or ~/.local/share/weft"},
    {"WEFT_DEVICE", "as --device"},
    {"WEFT_THREADS", "as --workers"},
    {"WEFT_PROFILE", "a file for seconds and calls of each kernel"},
    {"WEFT_TRACE", "a file for every call of a kernel, as a trace for Chrome or Perfetto"},
    {"WEFT_CUDA_LIBS", "folders where the driver, nvJitLink and cuBLASLt are looked for first"},
    {"NO_COLOR", "no colours"},
};

} // namespace

std::string weft::manualPage(const std::vector<CommandDescription> &commands, const std::string &version) {
  std::string page =
      ".TH WEFT 1 \"\" \"weft " + version +
      "\"\n.SH NAME\nweft \\- train transformers whose heads and "
      "layers are not all alike\n.SH SYNOPSIS\n\\fBweft\\fR \\fICOMMAND\\fR ...\n.SH DESCRIPTION\n"
      "A model, the plan that thins it, the recipe that trains it and the layout of its weights are "
      "text in .weft files. weft compiles and runs them.\n.SH COMMANDS\n";
  for (const CommandDescription &command : commands)
    if (!command.group)
      addCommand(page, command);
  page += ".SH ENVIRONMENT\n";
  for (const auto &[name, meaning] : kEnvironment)
    page += ".TP\n" + std::string(name) + "\n" + roff(meaning) + "\n";
  page += ".SH EXIT STATUS\n0 done, 1 explained error, 2 wrong usage, 130 interrupted and saved.\n";
  return page;
}
