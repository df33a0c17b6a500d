//===- Completions.cpp - Completions of three shells -----------------------===//

#include "tools/weft/Describe.h"

using namespace weft;

namespace {

/// `text` with `escape` before each of `characters`.
std::string escaped(const std::string &text, const char *characters, const char *escape = "\\") {
  std::string result;
  for (const char c : text) {
    if (std::string(characters).find(c) != std::string::npos)
      result += escape;
    result += c;
  }
  return result;
}

std::string quoted(const std::string &text) {
  std::string result = "'";
  for (const char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// Words that may stand after `weft` (group empty) or after `weft GROUP`.
std::vector<const CommandDescription *> wordsOf(const std::vector<CommandDescription> &commands,
                                                const std::string &group) {
  std::vector<const CommandDescription *> words;
  for (const CommandDescription &command : commands)
    if (group.empty() ? command.name.find(' ') == std::string::npos : command.name.starts_with(group + " "))
      words.push_back(&command);
  return words;
}

std::string lastWord(const std::string &name) { return name.substr(name.rfind(' ') + 1); }

constexpr const char *kDevices = "auto cpu cuda reference";

} // namespace

std::string weft::bashCompletion(const std::vector<CommandDescription> &commands) {
  std::string text = "# bash completion for weft: source <(weft completions bash)\n"
                     "_weft() {\n"
                     "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "  local command=${COMP_WORDS[1]} words= at=1\n";
  auto list = [&](const std::string &group) {
    std::string words;
    for (const CommandDescription *command : wordsOf(commands, group))
      words += (words.empty() ? "" : " ") + lastWord(command->name);
    return words;
  };
  text += "  if [ \"$COMP_CWORD\" = 1 ]; then\n    COMPREPLY=($(compgen -W \"" + list("") +
          " help\" -- \"$current\"))\n    return\n  fi\n  case $command in\n";
  for (const CommandDescription &command : commands)
    if (command.group)
      text += "    " + command.name +
              ")\n      if [ \"$COMP_CWORD\" = 2 ]; then\n        COMPREPLY=($(compgen -W \"" +
              list(command.name) +
              "\" -- \"$current\"))\n        return\n      fi\n      command+=\" ${COMP_WORDS[2]}\" ;;\n";
  text += "  esac\n  case $before in\n    --device) COMPREPLY=($(compgen -W \"" + std::string(kDevices) +
          "\" -- \"$current\")); return ;;\n  esac\n  case $command in\n";
  for (const CommandDescription &command : commands) {
    if (command.group)
      continue;
    std::string flags = "--help";
    for (const FlagDescription &flag : command.flags)
      if (!flag.name.empty())
        flags += (flag.name.size() == 1 ? " -" : " --") + flag.name;
    text += "    \"" + command.name + "\") words=\"" + flags + "\" ;;\n";
  }
  text += "  esac\n  if [[ $current == -* ]]; then\n    COMPREPLY=($(compgen -W \"$words\" -- "
          "\"$current\"))\n  else\n"
          "    COMPREPLY=($(compgen -f -- \"$current\"))\n  fi\n}\ncomplete -o filenames -F _weft weft\n";
  return text;
}

std::string weft::zshCompletion(const std::vector<CommandDescription> &commands) {
  auto described = [&](const std::string &group) {
    std::string text;
    for (const CommandDescription *command : wordsOf(commands, group))
      text += "      " + quoted(lastWord(command->name) + ":" + escaped(command->summary, ":")) + "\n";
    return text;
  };
  std::string text =
      "#compdef weft\n# zsh completion for weft: weft completions zsh > \"${fpath[1]}/_weft\"\n"
      "_weft() {\n  local -a words_\n  if (( CURRENT == 2 )); then\n    words_=(\n" +
      described("") +
      "    )\n    _describe command words_\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words; (( CURRENT-- ))\n  case $command in\n";
  for (const CommandDescription &command : commands)
    if (command.group)
      text += "    " + command.name + ")\n      if (( CURRENT == 2 )); then\n        words_=(\n" +
              described(command.name) +
              "        )\n        _describe action words_\n        return\n      fi\n"
              "      command+=\" $words[2]\"\n      shift words; (( CURRENT-- )) ;;\n";
  text += "  esac\n  case $command in\n";
  for (const CommandDescription &command : commands) {
    if (command.group)
      continue;
    text += "    " + quoted(command.name) + ")\n      _arguments";
    for (const FlagDescription &flag : command.flags) {
      if (flag.name.empty())
        continue;
      std::string spec =
          (flag.name.size() == 1 ? "*-" : "*--") + flag.name + "[" + escaped(flag.help, "[]\\") + "]";
      if (flag.name == "device")
        spec += ":device:(" + std::string(kDevices) + ")";
      else if (!flag.value.empty())
        spec += ":" + escaped(flag.value, ":[]\\") + ":_files";
      text += " \\\n        " + quoted(spec);
    }
    text += " \\\n        '*:file:_files' ;;\n";
  }
  return text + "  esac\n}\n_weft \"$@\"\n";
}

std::string weft::fishCompletion(const std::vector<CommandDescription> &commands) {
  std::string text =
      "# fish completion for weft: weft completions fish > ~/.config/fish/completions/weft.fish\n"
      "complete -c weft -n __fish_use_subcommand -f\n";
  for (const CommandDescription &command : commands) {
    const size_t space = command.name.find(' ');
    const std::string group = command.name.substr(0, space), last = lastWord(command.name);
    std::string seen = "__fish_seen_subcommand_from " + group;
    if (space == std::string::npos)
      text += "complete -c weft -n __fish_use_subcommand -a " + last + " -d " +
              quoted(escaped(command.summary, "")) + "\n";
    else {
      text += "complete -c weft -n '" + seen + "' -a " + last + " -d " + quoted(command.summary) + "\n";
      seen += "; and __fish_seen_subcommand_from " + last;
    }
    for (const FlagDescription &flag : command.flags)
      if (!flag.name.empty())
        text += "complete -c weft -n '" + seen + "' " + (flag.name.size() == 1 ? "-s " : "-l ") + flag.name +
                (flag.value.empty()      ? ""
                 : flag.name == "device" ? " -x -a '" + std::string(kDevices) + "'"
                                         : " -r") +
                " -d " + quoted(flag.help) + "\n";
  }
  return text;
}
