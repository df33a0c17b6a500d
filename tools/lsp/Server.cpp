//===- Server.cpp - The language server's conversation ---------------------===//

#include "tools/lsp/Server.h"

#include "absl/strings/str_cat.h"

#include <filesystem>
#include <utility>

namespace weft::lsp {
namespace {

/// As lang::SourceFiles takes them.
constexpr size_t kTextLimit = 16u << 20;

bool isId(const rt::Json &id) { return id.is_string() || id.is_number_integer(); }

ErrorCode codeOf(const absl::Status &status) {
  switch (status.code()) {
  case absl::StatusCode::kUnimplemented:
    return kMethodNotFound;
  case absl::StatusCode::kFailedPrecondition:
    return kRequestFailed;
  default:
    return kInvalidParams;
  }
}

absl::StatusOr<std::string> uriIn(const rt::Json &params) {
  absl::StatusOr<const rt::Json *> document = rt::memberOf(params, "textDocument", "params");
  return document.ok() ? rt::stringOf(**document, "uri", "textDocument") : document.status();
}

} // namespace

Server::Server(ServerOptions given) : options(std::move(given)), pages(options.pageFolder) {}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Server::receive(std::string_view json) {
  absl::StatusOr<rt::Json> message = rt::parseJson(json, "message");
  if (!message.ok()) {
    queue.push_back({nullptr, std::string(message.status().message()), false});
    return;
  }
  auto method = message->is_object() ? message->find("method") : message->end();
  auto params = message->is_object() ? message->find("params") : message->end();
  if (message->is_object() && method != message->end() && *method == "$/cancelRequest" &&
      params != message->end())
    cancel(*params);
  else
    queue.push_back({std::move(*message), "", false});
}

void Server::cancel(const rt::Json &params) {
  absl::StatusOr<const rt::Json *> id = rt::memberOf(params, "id", "params");
  if (!id.ok())
    return;
  for (Waiting &waiting : queue)
    if (waiting.message.is_object() && waiting.message.contains("id") && waiting.message["id"] == **id)
      waiting.cancelled = true;
}

void Server::work() {
  while (!queue.empty() && !ended) {
    const Waiting next = std::move(queue.front());
    queue.pop_front();
    handle(next);
  }
  if (!ended)
    tellProblems();
}

void Server::handle(const Waiting &waiting) {
  if (!waiting.broken.empty())
    return refuse(nullptr, kParseError, waiting.broken);
  const rt::Json &message = waiting.message;
  if (!message.is_object())
    return refuse(nullptr, kInvalidRequest, "expected an object with a method, found another value");
  auto id = message.find("id"), method = message.find("method"), params = message.find("params");
  const bool hasId = id != message.end();
  if (method == message.end() && hasId && (message.contains("result") || message.contains("error")))
    return; // an answer: the server asks nothing
  if (method == message.end() || !method->is_string() || (hasId && !isId(*id)))
    return refuse(hasId && isId(*id) ? *id : rt::Json(), kInvalidRequest,
                  "expected a method by name and an id that is a number or a text");
  static const rt::Json kNone = rt::Json::object();
  const rt::Json &given = params == message.end() ? kNone : *params;
  if (hasId)
    answerRequest(*id, method->get<std::string>(), given, waiting.cancelled);
  else
    notify(method->get<std::string>(), given);
}

void Server::answerRequest(const rt::Json &id, const std::string &method, const rt::Json &params,
                           bool cancelled) {
  if (cancelled)
    return refuse(id, kRequestCancelled, "cancelled");
  if (!initialized && method != "initialize")
    return refuse(id, kNotInitialized, "expected `initialize` first");
  if (shutDown || (initialized && method == "initialize"))
    return refuse(id, kInvalidRequest,
                  shutDown ? "after `shutdown` only `exit` may follow" : "initialized already");
  auto known = requests().find(method);
  if (known == requests().end())
    return refuse(id, kMethodNotFound, absl::StrCat("there is no method `", method, "`"));
  Answer answer = (this->*known->second)(params);
  if (answer.ok())
    reply(id, std::move(*answer));
  else
    refuse(id, codeOf(answer.status()), std::string(answer.status().message()));
}

void Server::notify(const std::string &method, const rt::Json &params) {
  if (method == "exit") {
    ended = shutDown ? 0 : 1;
    return;
  }
  auto known = notifications().find(method);
  if (!initialized || shutDown || known == notifications().end())
    return; // notifications have no answer
  if (Answer answer = (this->*known->second)(params); !answer.ok())
    send({{"method", "window/showMessage"},
          {"params",
           {{"type", 1},
            {"message", absl::StrCat("weft: ", method, ": ", std::string(answer.status().message()))}}}});
}

void Server::reply(const rt::Json &id, rt::Json result) {
  rt::Json message = {{"id", id}};
  message["result"] = std::move(result);
  send(std::move(message));
}

void Server::refuse(const rt::Json &id, ErrorCode code, const std::string &message) {
  send({{"id", id}, {"error", {{"code", static_cast<int>(code)}, {"message", message}}}});
}

void Server::send(rt::Json message) {
  message["jsonrpc"] = "2.0";
  replies.push_back(rt::dumpJson(message));
}

//===----------------------------------------------------------------------===//
// Life
//===----------------------------------------------------------------------===//

Server::Answer Server::initialize(const rt::Json &) {
  initialized = true;
  rt::Json capabilities = {
      {"positionEncoding", "utf-16"},   {"textDocumentSync", {{"openClose", true}, {"change", 2}}},
      {"hoverProvider", true},          {"definitionProvider", true},
      {"referencesProvider", true},     {"documentHighlightProvider", true},
      {"documentSymbolProvider", true}, {"documentFormattingProvider", true}};
  capabilities["completionProvider"]["triggerCharacters"] = rt::Json::array({".", "[", "="});
  capabilities["codeActionProvider"]["codeActionKinds"] = rt::Json::array({"quickfix"});
  return rt::Json{{"capabilities", capabilities},
                  {"serverInfo", {{"name", "weft"}, {"version", options.version}}}};
}

Server::Answer Server::shutdown(const rt::Json &) {
  shutDown = true;
  return rt::Json();
}

Server::Answer Server::ignore(const rt::Json &) { return rt::Json(); }

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

Server::Answer Server::open(const rt::Json &params) {
  absl::StatusOr<std::string> uri = uriIn(params);
  if (!uri.ok())
    return uri.status();
  absl::StatusOr<std::string> text = rt::stringOf(params["textDocument"], "text", "textDocument");
  if (!text.ok())
    return text.status();
  if (text->size() > kTextLimit)
    return absl::InvalidArgumentError(
        absl::StrCat(*uri, " has ", text->size(), " bytes, expected at most ", kTextLimit));
  documents.insert_or_assign(*uri, Document{pathOfUri(*uri), Text(std::move(*text)), nullptr, false});
  changed(*uri);
  return rt::Json();
}

Server::Answer Server::change(const rt::Json &params) {
  absl::StatusOr<Target> at = document(params);
  if (!at.ok())
    return at.status();
  absl::StatusOr<const rt::Json *> changes = rt::memberOf(params, "contentChanges", "params");
  if (!changes.ok() || !(*changes)->is_array())
    return absl::InvalidArgumentError("params: 'contentChanges': expected a list");
  changed(at->uri);
  for (const rt::Json &step : **changes) {
    absl::StatusOr<std::string> text = rt::stringOf(step, "text", "contentChanges");
    if (!text.ok())
      return text.status();
    Text &now = at->document->text;
    if (now.bytes().size() + text->size() > 2 * kTextLimit)
      return absl::InvalidArgumentError(
          absl::StrCat(at->uri, " would have more than ", kTextLimit, " bytes"));
    if (!step.contains("range")) {
      now = Text(std::move(*text));
      continue;
    }
    absl::StatusOr<Range> range = rangeOf(step["range"]);
    absl::Status done = range.ok() ? now.replace(*range, *text) : range.status();
    if (!done.ok())
      return done;
  }
  return rt::Json();
}

Server::Answer Server::close(const rt::Json &params) {
  absl::StatusOr<Target> at = document(params);
  if (!at.ok())
    return at.status();
  changed(at->uri);
  documents.erase(at->uri);
  rt::Json none = {{"uri", at->uri}};
  none["diagnostics"] = rt::Json::array();
  send({{"method", "textDocument/publishDiagnostics"}, {"params", none}});
  return rt::Json();
}

/// Texts that read this one are checked again too.
void Server::changed(const std::string &uri) {
  auto found = documents.find(uri);
  std::error_code error;
  const std::string path = std::filesystem::weakly_canonical(found->second.path, error).string();
  for (auto &[other, document] : documents) {
    bool reads = other == uri;
    for (int32_t source = 0; document.analysis && source < document.analysis->sources.count(); ++source)
      reads =
          reads ||
          std::filesystem::weakly_canonical(document.analysis->sources.file(source).path, error).string() ==
              path;
    // A file that was missing may be this one.
    reads = reads || (document.analysis && document.analysis->diagnostics.hasErrors());
    if (reads) {
      document.analysis.reset();
      document.told = false;
    }
  }
}

Analysis &Server::analysisOf(Document &document) {
  if (!document.analysis) {
    auto open = [this](const std::string &canonical) -> std::optional<std::string> {
      std::error_code error;
      for (const auto &[uri, other] : documents)
        if (std::filesystem::weakly_canonical(other.path, error).string() == canonical)
          return other.text.bytes();
      return std::nullopt;
    };
    document.analysis = std::make_unique<Analysis>(document.path, document.text.bytes(), open);
  }
  return *document.analysis;
}

void Server::tellProblems() {
  for (auto &[uri, document] : documents)
    if (!std::exchange(document.told, true)) {
      rt::Json params = {{"uri", uri}};
      params["diagnostics"] = problemsOf(analysisOf(document), pages);
      send({{"method", "textDocument/publishDiagnostics"}, {"params", params}});
    }
}

absl::StatusOr<Server::Target> Server::document(const rt::Json &params) {
  absl::StatusOr<std::string> uri = uriIn(params);
  if (!uri.ok())
    return uri.status();
  auto found = documents.find(*uri);
  if (found == documents.end())
    return absl::InvalidArgumentError(absl::StrCat(*uri, " is not open"));
  Target target;
  target.uri = *uri;
  target.document = &found->second;
  return target;
}

absl::StatusOr<Server::Target> Server::target(const rt::Json &params) {
  absl::StatusOr<Target> at = document(params);
  if (!at.ok())
    return at;
  absl::StatusOr<const rt::Json *> member = rt::memberOf(params, "position", "params");
  absl::StatusOr<Position> position = member.ok() ? positionOf(**member) : member.status();
  if (!position.ok())
    return position.status();
  at->offset = at->document->text.offsetOf(*position);
  at->analysis = &analysisOf(*at->document);
  return at;
}

} // namespace weft::lsp
