// Conversations with the server, in process.
#include "tools/lsp/Server.h"

#include <gtest/gtest.h>

#include <fstream>

namespace weft::lsp {
namespace {

using rt::Json;

constexpr const char *kUri = "file:///nowhere/m.weft";

class Session {
public:
  explicit Session(bool initialize = true) : server({"0.0.0", ""}) {
    if (initialize)
      request("initialize", {});
  }

  void receive(const Json &message) { server.receive(rt::dumpJson(message)); }
  std::vector<Json> work() {
    server.work();
    std::vector<Json> all;
    for (const std::string &reply : server.takeReplies())
      all.push_back(Json::parse(reply));
    return all;
  }
  Json request(const std::string &method, const Json &params) {
    receive({{"jsonrpc", "2.0"}, {"id", ++last}, {"method", method}, {"params", params}});
    for (const Json &reply : work())
      if (reply.contains("id") && reply["id"] == last)
        return reply;
    return "no answer";
  }
  Json notify(const std::string &method, const Json &params) {
    receive({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
    std::vector<Json> all = work();
    return all.empty() ? Json() : all[0];
  }
  /// The problems of the opened text.
  Json open(const std::string &text, const std::string &uri = kUri) {
    return notify("textDocument/didOpen",
                  {{"textDocument", {{"uri", uri}, {"languageId", "weft"}, {"version", 1}, {"text", text}}}});
  }
  Json change(const Json &changes) {
    return notify("textDocument/didChange",
                  {{"textDocument", {{"uri", kUri}, {"version", 2}}}, {"contentChanges", changes}});
  }
  Json at(const std::string &method, int line, int character) {
    return request("textDocument/" + method, {{"textDocument", {{"uri", kUri}}},
                                              {"position", {{"line", line}, {"character", character}}}});
  }

  Server server;
  int last = 0;
};

Json range(int line, int from, int to) {
  return {{"start", {{"line", line}, {"character", from}}}, {"end", {{"line", line}, {"character", to}}}};
}

std::string codes(const Json &published) {
  std::string all;
  for (const Json &problem : published["params"]["diagnostics"])
    all += (all.empty() ? "" : " ") + problem["code"].get<std::string>();
  return all;
}

constexpr const char *kModel = "model m(vocab = 8, dim = 4) { # \xC3\xA9\xF0\x9F\x98\x80\n"
                               "  input tokens : int[batch, pos]\n"
                               "  param embed : [vocab, dim] init 0 # \xC3\xA9\xF0\x9F\x98\x80\n"
                               "  output logits = embed[tokens] @ embad\n"
                               "  output other = embed[tokons]\n"
                               "}\n";

// Mutation: the first error ends the check.
TEST(Server, TellsEveryError) {
  Session session;
  const Json published = session.open(kModel);
  EXPECT_EQ(codes(published), "W0201 W0201");
  const Json &first = published["params"]["diagnostics"][0];
  EXPECT_EQ(first["range"], range(3, 34, 39));
  EXPECT_EQ(first["message"], "there is no name embad here\nhelp: did you mean embed?");
  EXPECT_EQ(first["relatedInformation"][0]["location"]["range"], range(2, 8, 13));
}

TEST(Server, OffersWhatWasMeant) {
  Session session;
  session.open(kModel);
  const Json answer = session.request(
      "textDocument/codeAction",
      {{"textDocument", {{"uri", kUri}}}, {"range", range(3, 36, 36)}, {"context", Json::object()}});
  ASSERT_EQ(answer["result"].size(), 1u);
  const Json edit = answer["result"][0]["edit"]["changes"][kUri][0];
  EXPECT_EQ(edit["range"], range(3, 34, 39));
  EXPECT_EQ(edit["newText"], "embed");
  EXPECT_EQ(codes(session.change(Json::array({{{"range", edit["range"]}, {"text", edit["newText"]}}}))),
            "W0201");
}

// é is one unit, the emoji two, so `/` in `a é😀 / b` style comments shifts nothing else.
// Mutation: the change applied at bytes.
TEST(Server, ChangesAtUtf16Units) {
  Session session;
  session.open("# \xC3\xA9\xF0\x9F\x98\x80 xmodel m() { }\n");
  // `# é😀 x`: units 2 é, 3 and 4 the emoji, 5 blank, 6 x. The comment ends in front of `model`.
  const Json published = session.change(Json::array({{{"range", range(0, 6, 7)}, {"text", "\n"}}}));
  EXPECT_EQ(codes(published), "W0315");
  EXPECT_EQ(published["params"]["diagnostics"][0]["range"]["start"]["line"], 1);
}

TEST(Server, TakesWholeTextsToo) {
  Session session;
  session.open("nothing");
  EXPECT_EQ(codes(session.change(Json::array({{{"text", "model m() { }\n"}}}))), "W0315");
}

TEST(Server, GoesToDefinitions) {
  Session session;
  session.open(kModel);
  EXPECT_EQ(session.at("definition", 4, 19)["result"]["range"], range(2, 8, 13));
  EXPECT_EQ(session.at("definition", 2, 18)["result"]["range"], range(0, 8, 13));
  EXPECT_TRUE(session.at("definition", 1, 3)["result"].is_null());
  EXPECT_EQ(session.at("references", 2, 10)["result"].size(), 3u);
  EXPECT_EQ(session.at("documentHighlight", 2, 10)["result"].size(), 3u);
}

TEST(Server, ShowsShapes) {
  Session session;
  session.open(kModel);
  const Json page = session.at("hover", 4, 19)["result"];
  EXPECT_EQ(page["range"], range(4, 17, 22));
  EXPECT_NE(page["contents"]["value"].get<std::string>().find("param embed : [vocab = 8, dim = 4]"),
            std::string::npos);
  EXPECT_NE(session.at("hover", 1, 3)["result"]["contents"]["value"].get<std::string>().find("input NAMES"),
            std::string::npos);
}

TEST(Server, OutlinesAndCompletes) {
  Session session;
  session.open(kModel);
  const Json symbols =
      session.request("textDocument/documentSymbol", {{"textDocument", {{"uri", kUri}}}})["result"];
  ASSERT_EQ(symbols.size(), 1u);
  EXPECT_EQ(symbols[0]["name"], "m");
  EXPECT_EQ(symbols[0]["children"].size(), 6u); // vocab dim tokens embed logits other
  std::string labels;
  const Json answer = session.at("completion", 4, 17);
  for (const Json &item : answer["result"])
    labels += " " + item["label"].get<std::string>();
  for (const char *label : {" embed", " tokens", " dim", " rms_norm", " branch"})
    EXPECT_NE((labels + " ").find(std::string(label) + " "), std::string::npos) << label;
}

TEST(Server, LaysOut) {
  Session session;
  session.open("model m() {\nlet  a=1\n}\n");
  const Json edits = session.request(
      "textDocument/formatting", {{"textDocument", {{"uri", kUri}}}, {"options", Json::object()}})["result"];
  ASSERT_EQ(edits.size(), 1u);
  EXPECT_EQ(edits[0]["newText"], "  let a = 1\n");
  EXPECT_EQ(edits[0]["range"]["start"], (Json{{"line", 1}, {"character", 0}}));
  EXPECT_EQ(edits[0]["range"]["end"], (Json{{"line", 2}, {"character", 0}}));
  session.change(Json::array({{{"text", "model m( {\n"}}}));
  EXPECT_EQ(session.request("textDocument/formatting", {{"textDocument", {{"uri", kUri}}}})["error"]["code"],
            kRequestFailed);
}

// Mutation: a used file read from the disk although it is open.
TEST(Server, ReadsOpenTextsOfUsedFiles) {
  Session session;
  session.open("model m(depth = 2) {\n  output y = position * 1.0\n}\n", "file:///nowhere/a.weft");
  EXPECT_EQ(codes(session.open("use \"a.weft\"\nplan p for m { windows 5 on block[..] }\n")), "W0306");
  session.notify("textDocument/didChange",
                 {{"textDocument", {{"uri", "file:///nowhere/a.weft"}}},
                  {"contentChanges", Json::array({{{"text", "model m(depth = 2) { }\n"}}})}});
}

// Mutation: a cancelled request answered, or one without an answer.
TEST(Server, CancelsWhatWaits) {
  Session session;
  session.open(kModel);
  session.receive({{"id", "a"}, {"method", "textDocument/hover"}, {"params", Json::object()}});
  session.receive({{"id", "b"}, {"method", "textDocument/hover"}, {"params", Json::object()}});
  session.receive({{"method", "$/cancelRequest"}, {"params", {{"id", "b"}}}});
  const std::vector<Json> replies = session.work();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0]["error"]["code"], kInvalidParams);
  EXPECT_EQ(replies[1]["error"]["code"], kRequestCancelled);
}

TEST(Server, RefusesWhatIsNoRequest) {
  Session session;
  for (const char *text : {"", "{", "[1, 2]", "7", "{\"id\": 1}", "{\"id\": {}, \"method\": \"x\"}",
                           "{\"id\": 1, \"method\": 2}", "\"\xFF\"", "{\"a\": 1, \"a\": 2}"}) {
    session.server.receive(text);
    const std::vector<Json> replies = session.work();
    ASSERT_EQ(replies.size(), 1u) << text;
    EXPECT_TRUE(replies[0]["error"]["code"] == kParseError || replies[0]["error"]["code"] == kInvalidRequest)
        << text;
  }
  session.server.receive(std::string(100000, '[') + std::string(100000, ']'));
  EXPECT_EQ(session.work()[0]["error"]["code"], kParseError);
  EXPECT_EQ(session.request("textDocument/nothing", {})["error"]["code"], kMethodNotFound);
  EXPECT_EQ(session.request("textDocument/hover", Json::array())["error"]["code"], kInvalidParams);
  EXPECT_EQ(session.at("hover", 0, 0)["error"]["code"], kInvalidParams); // not open
}

TEST(Server, KeepsToTheOrderOfALife) {
  Session session(false);
  EXPECT_EQ(session.request("textDocument/hover", {})["error"]["code"], kNotInitialized);
  EXPECT_TRUE(session.request("initialize", {})["result"]["capabilities"]["hoverProvider"].get<bool>());
  EXPECT_EQ(session.request("initialize", {})["error"]["code"], kInvalidRequest);
  EXPECT_TRUE(session.request("shutdown", {}).contains("result"));
  EXPECT_EQ(session.request("shutdown", {})["error"]["code"], kInvalidRequest);
  session.notify("exit", {});
  EXPECT_EQ(session.server.exitCode(), 0);
  Session rude;
  rude.notify("exit", {});
  EXPECT_EQ(rude.server.exitCode(), 1);
}

TEST(Server, ClearsTheProblemsOfAClosedText) {
  Session session;
  session.open(kModel);
  const Json published = session.notify("textDocument/didClose", {{"textDocument", {{"uri", kUri}}}});
  EXPECT_EQ(published["params"]["diagnostics"], Json::array());
  EXPECT_EQ(session.at("hover", 0, 0)["error"]["code"], kInvalidParams);
}

} // namespace
} // namespace weft::lsp
