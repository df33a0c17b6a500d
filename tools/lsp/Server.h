//===- Server.h - The language server's conversation ------------*- C++ -*-===//
//
// JSON-RPC 2.0 and the Language Server Protocol 3.17. Messages are received
// first and worked on then, so that a cancellation reaches a request that waits
// and a text that changes several times is checked once. Nothing here reads or
// writes a stream: Loop.h does.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/lsp/Problems.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lsp {

struct ServerOptions {
  std::string version;
  std::string pageFolder; // where pages of error codes may be written; empty: no links
};

/// Codes of JSON-RPC and of the protocol.
enum ErrorCode {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kNotInitialized = -32002,
  kRequestFailed = -32803,
  kRequestCancelled = -32800,
};

class Server {
public:
  explicit Server(ServerOptions options);

  /// Takes one message, whatever it holds.
  void receive(std::string_view json);
  /// Answers what was received, then says what is wrong with texts that changed.
  void work();
  /// What is to be sent, in order.
  std::vector<std::string> takeReplies() { return std::exchange(replies, {}); }
  /// Set by `exit`: 0 after `shutdown`, else 1.
  std::optional<int> exitCode() const { return ended; }
  bool isShutDown() const { return shutDown; }

private:
  struct Document {
    std::string path;
    Text text;
    std::unique_ptr<Analysis> analysis; // null: changed since
    bool told = false;                  // its problems were sent
  };
  struct Waiting {
    rt::Json message;
    std::string broken; // why it is no message
    bool cancelled = false;
  };
  using Answer = absl::StatusOr<rt::Json>;
  using Method = Answer (Server::*)(const rt::Json &params);
  static const std::map<std::string, Method, std::less<>> &requests();
  static const std::map<std::string, Method, std::less<>> &notifications();

  void handle(const Waiting &waiting);
  void cancel(const rt::Json &params);
  void answerRequest(const rt::Json &id, const std::string &method, const rt::Json &params, bool cancelled);
  void notify(const std::string &method, const rt::Json &params);
  void reply(const rt::Json &id, rt::Json result);
  void refuse(const rt::Json &id, ErrorCode code, const std::string &message);
  void send(rt::Json message);
  void tellProblems();
  void changed(const std::string &uri);

  Answer initialize(const rt::Json &params);
  Answer shutdown(const rt::Json &params);
  Answer ignore(const rt::Json &params);
  Answer open(const rt::Json &params);
  Answer change(const rt::Json &params);
  Answer close(const rt::Json &params);
  Answer hover(const rt::Json &params);
  Answer definition(const rt::Json &params);
  Answer references(const rt::Json &params);
  Answer highlight(const rt::Json &params);
  Answer symbols(const rt::Json &params);
  Answer completion(const rt::Json &params);
  Answer formatting(const rt::Json &params);
  Answer codeAction(const rt::Json &params);

  /// The open text that `params` name, and a place in it.
  struct Target {
    std::string uri;
    Document *document = nullptr;
    Analysis *analysis = nullptr;
    size_t offset = 0;
  };
  absl::StatusOr<Target> document(const rt::Json &params);
  absl::StatusOr<Target> target(const rt::Json &params);
  Analysis &analysisOf(Document &document);
  rt::Json locationOf(Analysis &analysis, const lang::Place &place);

  ServerOptions options;
  ErrorPages pages;
  std::deque<Waiting> queue;
  std::vector<std::string> replies;
  std::map<std::string, Document> documents; // by URI
  bool initialized = false, shutDown = false;
  std::optional<int> ended;
};

} // namespace weft::lsp
