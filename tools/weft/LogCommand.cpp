//===- LogCommand.cpp - weft log --------------------------------------------===//

#include "tools/weft/Output.h"

#include "runtime/core/File.h"
#include "runtime/measure/RunLog.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"

#include <sys/stat.h>

using namespace weft;
namespace cl = llvm::cl;

namespace {

/// When the run began: run.weft is written once, before its first step.
double startOf(const std::string &run) {
  struct stat info {};
  if (::stat((run + "/run.weft").c_str(), &info) != 0)
    return 0;
  return static_cast<double>(info.st_mtim.tv_sec) + static_cast<double>(info.st_mtim.tv_nsec) * 1e-9;
}

/// DIR/events.out.tfevents.SECONDS.weft: TensorBoard looks for the first three words.
absl::StatusOr<std::string> writeEvents(const std::string &folder, const std::string &run,
                                        const std::vector<rt::LogRow> &rows) {
  if (absl::Status status = rt::makeFolders(folder); !status.ok())
    return status;
  const double start = startOf(run);
  const std::string path =
      absl::StrCat(folder, "/events.out.tfevents.", static_cast<int64_t>(start), ".weft");
  if (absl::Status status = rt::writeFileAtomic(path, rt::tensorBoardOf(rows, start)); !status.ok())
    return status;
  return path;
}

} // namespace

int weft::logCommand(int argc, const char **argv) {
  cl::opt<std::string> run(cl::Positional, cl::Required, cl::desc("RUN"), cl::cat(flagCategory()));
  cl::opt<std::string> csv("csv", cl::desc("write comma-separated values (-: to standard output)"),
                           cl::value_desc("FILE"), cl::cat(flagCategory()));
  cl::opt<std::string> board("tensorboard", cl::desc("write an event file that TensorBoard reads"),
                             cl::value_desc("DIR"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "a run's log for other programs",
                  "  weft log runs/first --csv first.csv\n  weft log runs/first --tensorboard board/first\n"))
    return kUsage;
  if (csv.empty() && board.empty())
    return misuse("log", "expected --csv FILE or --tensorboard DIR");
  absl::StatusOr<std::vector<rt::LogRow>> rows = rt::readRunLog(run);
  if (!rows.ok())
    return fail(rows.status());
  if (csv == "-")
    llvm::outs() << rt::csvOf(*rows);
  else if (!csv.empty())
    if (absl::Status status = rt::writeFileAtomic(csv, rt::csvOf(*rows)); !status.ok())
      return fail(status);
  if (board.empty())
    return 0;
  absl::StatusOr<std::string> written = writeEvents(board, run, *rows);
  if (!written.ok())
    return fail(written.status());
  llvm::outs() << "wrote " << *written << ": " << rows->size() << " lines\n";
  return 0;
}
