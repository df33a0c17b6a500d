//===- Loop.cpp - A server on two descriptors ------------------------------===//

#include "tools/lsp/Loop.h"

#include "tools/lsp/Frames.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <poll.h>
#include <unistd.h>

namespace weft::lsp {
namespace {

class Stream {
public:
  Stream(int in, int out, Server &server) : in(in), out(out), server(server) {}

  /// Waits for bytes and takes all that are there; false at the end.
  absl::StatusOr<bool> take() {
    pollfd more{in, POLLIN, 0};
    do {
      char bytes[1 << 16];
      const ssize_t count = ::read(in, bytes, sizeof bytes);
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0)
        return absl::UnavailableError(absl::StrCat("can't read: ", std::strerror(errno)));
      if (count == 0)
        return false;
      reader.feed({bytes, static_cast<size_t>(count)});
      while (true) {
        absl::StatusOr<std::optional<std::string>> message = reader.next();
        if (!message.ok())
          return message.status();
        if (!*message)
          break;
        server.receive(**message);
      }
    } while (::poll(&more, 1, 0) > 0);
    return true;
  }

  absl::Status answer() {
    server.work();
    for (const std::string &reply : server.takeReplies()) {
      const std::string bytes = framed(reply);
      for (size_t done = 0; done < bytes.size();) {
        const ssize_t count = ::write(out, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno != EINTR)
          return absl::UnavailableError(absl::StrCat("can't write: ", std::strerror(errno)));
        done += count < 0 ? 0 : static_cast<size_t>(count);
      }
    }
    return absl::OkStatus();
  }

  bool midway() const { return reader.midway(); }

private:
  int in, out;
  Server &server;
  FrameReader reader;
};

} // namespace

int serve(int in, int out, Server &server, std::string &why) {
  std::signal(SIGPIPE, SIG_IGN); // an editor that is gone shows as an error of write
  Stream stream(in, out, server);
  while (true) {
    absl::StatusOr<bool> more = stream.take();
    absl::Status sent = stream.answer();
    if (server.exitCode())
      return *server.exitCode();
    if (!more.ok() || !sent.ok()) {
      why = std::string((more.ok() ? sent : more.status()).message());
      return 1;
    }
    if (*more)
      continue;
    if (server.isShutDown() && !stream.midway())
      return 0;
    why = stream.midway() ? "the input ended inside a message" : "the input ended without `shutdown`";
    return 1;
  }
}

} // namespace weft::lsp
