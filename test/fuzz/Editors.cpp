// The language server: its stream, and questions about any text.
#include "test/fuzz/Targets.h"

#include "runtime/core/Json.h"
#include "tools/lsp/Frames.h"
#include "tools/lsp/Server.h"

namespace weft::fuzz {
namespace {

using rt::Json;

constexpr const char *kUri = "file:///nowhere/input.weft";

/// `use` would read files of the machine: its word is broken, also when it is escaped.
std::string withoutUse(std::string text) {
  for (const char *word : {"use", "\\u"})
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at)
      text[at] = 'U';
  return text;
}

std::string message(const std::string &method, Json params, int id = 0) {
  Json made = {{"jsonrpc", "2.0"}, {"method", method}};
  if (id > 0)
    made["id"] = id;
  made["params"] = std::move(params);
  return rt::dumpJson(made);
}

Json textDocument() { return {{"uri", kUri}, {"languageId", "weft"}, {"version", 1}}; }

std::string opened(const std::string &text) {
  Json document = textDocument();
  document["text"] = text;
  return message("textDocument/didOpen", {{"textDocument", document}});
}

/// Codes of the errors in the replies and of the problems told. Every reply is a message.
std::string outcomeOf(const std::vector<std::string> &replies) {
  std::string outcome;
  for (const std::string &reply : replies) {
    absl::StatusOr<Json> read = rt::parseJson(reply, "reply");
    require(read.ok() && read->contains("jsonrpc"), "a reply is no message");
    if (read->contains("error") && outcome.size() < 60)
      outcome += (*read)["error"]["code"].dump() + " ";
    if (read->contains("params") && (*read)["params"].contains("diagnostics"))
      for (const Json &problem : (*read)["params"]["diagnostics"])
        if (outcome.size() < 60)
          outcome += problem["code"].get<std::string>();
  }
  return outcome.empty() ? "ok" : outcome;
}

} // namespace

std::string lspStream(const std::string &input) {
  lsp::Server server({"0", ""});
  lsp::FrameReader reader;
  const std::string bytes = withoutUse(input);
  std::vector<std::string> replies;
  std::string broken;
  for (size_t at = 0; at < bytes.size() && broken.empty(); at += 999) {
    reader.feed(std::string_view(bytes).substr(at, 999));
    while (broken.empty()) {
      absl::StatusOr<std::optional<std::string>> next = reader.next();
      if (!next.ok())
        broken = outcomeOf(next.status());
      if (!next.ok() || !*next)
        break;
      server.receive(**next);
    }
    server.work();
    for (std::string &reply : server.takeReplies())
      replies.push_back(std::move(reply));
  }
  const std::string outcome = outcomeOf(replies);
  return broken.empty() ? outcome : broken + outcome;
}

std::vector<std::string> lspStreamSeeds() {
  const Json at = {{"textDocument", textDocument()}, {"position", {{"line", 3}, {"character", 9}}}};
  const std::string nano = sourceFile("models/nano.weft");
  std::string stream;
  for (const std::string &each :
       {message("initialize", Json::object(), 1), message("initialized", Json::object()), opened(nano),
        message("textDocument/hover", at, 2), message("textDocument/definition", at, 3),
        message("textDocument/references", at, 4), message("textDocument/completion", at, 5),
        message("textDocument/documentSymbol", at, 6), message("textDocument/formatting", at, 7),
        message(
            "textDocument/didChange",
            {{"textDocument", textDocument()},
             {"contentChanges", Json::array({{{"range", {{"start", at["position"]}, {"end", at["position"]}}},
                                              {"text", "x"}}})}}),
        message("textDocument/codeAction",
                {{"textDocument", textDocument()},
                 {"range", {{"start", at["position"]}, {"end", at["position"]}}}},
                8),
        message("textDocument/didClose", {{"textDocument", textDocument()}}),
        message("shutdown", Json::object(), 9), message("exit", Json::object())})
    stream += lsp::framed(each);
  return {withoutUse(stream)};
}

/// Asks everything at 16 places of the text.
std::string lspText(const std::string &input) {
  std::string text;
  for (const char c : withoutUse(input)) // JSON carries UTF-8 alone
    text += static_cast<unsigned char>(c) < 0x80 ? std::string(1, c) : "\xC3\xA9";
  lsp::Server server({"0", ""});
  server.receive(message("initialize", Json::object(), 1));
  server.receive(opened(text));
  const lsp::Text lines(text);
  for (size_t i = 0; i <= 16; ++i) {
    const lsp::Position place = lines.positionOf(text.size() * i / 16);
    const Json at = {{"textDocument", textDocument()}, {"position", jsonOf(place)}};
    for (const char *method : {"hover", "definition", "references", "documentHighlight", "completion"})
      server.receive(message(std::string("textDocument/") + method, at, 2));
  }
  const Json whole = {{"textDocument", textDocument()}, {"range", jsonOf(lines.rangeOf(0, text.size()))}};
  for (const char *method : {"documentSymbol", "codeAction", "formatting"})
    server.receive(message(std::string("textDocument/") + method, whole, 3));
  server.work();
  return outcomeOf(server.takeReplies());
}

} // namespace weft::fuzz
