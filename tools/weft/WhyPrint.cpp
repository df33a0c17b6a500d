//===- WhyPrint.cpp - What weft why prints ---------------------------------===//

#include "tools/weft/Costs.h"
#include "tools/weft/Output.h"
#include "tools/weft/Why.h"

#include "runtime/control/WindowRatios.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <limits>

using namespace weft;
using namespace weft::why;

namespace {

std::string windowText(int64_t window) {
  return window == std::numeric_limits<int64_t>::max() ? "full" : window == 0 ? "-" : std::to_string(window);
}

/// Windows by head, equal neighbours as a range: `heads 0..3 full, 4 256`.
std::string windowsText(const AttendAnswer &attend, const std::set<int64_t> &heads) {
  Names parts;
  for (size_t head = 0; head < attend.windows.size(); ++head) {
    if (!heads.empty() && !heads.contains(static_cast<int64_t>(head)))
      continue;
    size_t last = head;
    while (last + 1 < attend.windows.size() && attend.windows[last + 1] == attend.windows[head] &&
           (heads.empty() || heads.contains(static_cast<int64_t>(last + 1))))
      ++last;
    parts.push_back(absl::StrCat(head == last ? "head " : "heads ", head,
                                 head == last ? "" : absl::StrCat("..", last), ": ",
                                 windowText(attend.windows[head])));
    head = last;
  }
  return absl::StrJoin(parts, ", ");
}

/// Of the heads of the address, or of all.
std::vector<int64_t> asked(const std::vector<int64_t> &ofHeads, const std::set<int64_t> &heads) {
  std::vector<int64_t> some;
  for (size_t head = 0; head < ofHeads.size(); ++head)
    if (heads.empty() || heads.contains(static_cast<int64_t>(head)))
      some.push_back(ofHeads[head]);
  return some;
}

void printAttend(const AttendAnswer &attend, const std::set<int64_t> &heads) {
  llvm::raw_ostream &out = llvm::outs();
  out << "attend in " << addressOf(attend.scope) << ", windows: " << windowsText(attend, heads) << "\n";
  for (const auto &[what, left] :
       {std::pair("frozen, on a pattern: ", attend.frozen), std::pair("pruned: ", attend.pruned)})
    if (!left.empty())
      out << "  " << what << (left.size() == 1 ? "head " : "heads ") << absl::StrJoin(left, ", ") << "\n";
  if (!attend.origin.empty())
    out << "  " << attend.origin << "\n";
  if (attend.positions > 0) {
    const std::vector<int64_t> windows = asked(attend.windows, heads),
                               places = asked(attend.firstPlaces, heads);
    out << llvm::formatv("  ACR {0:F4}, pairs {1:F4} of full attention over {2} positions\n",
                         rt::contextRatio(windows, attend.positions, places),
                         rt::pairRatio(windows, attend.positions, places), attend.positions);
  }
  const char *const names[] = {"|q|",  "sd q",    "|k|",         "sd k", "|v|",
                               "sd v", "entropy", "output norm", "usage"};
  for (const auto &[head, feature] : attend.features) {
    if (!heads.empty() && !heads.contains(head))
      continue;
    out << "  features of head " << head << ":";
    for (int i = 0; i < rt::kFeatureCount; ++i)
      out << llvm::formatv("{0} {1} {2:F4}", i ? "," : "", names[i], feature[static_cast<size_t>(i)]);
    out << "\n";
  }
}

} // namespace

void weft::why::printAnswer(const Answer &answer, const Address &address, const std::string &file) {
  llvm::raw_ostream &out = llvm::outs();
  // Most places lie in the model's own file: there the line says enough.
  auto shortened = [&](Names places) {
    for (std::string &place : places)
      if (place.starts_with(file + ":"))
        place.erase(0, file.size() + 1);
    return absl::StrJoin(places, ", ");
  };
  for (const ParameterAnswer &parameter : answer.parameters) {
    out << "parameter " << addressOf(parameter.path) << " : " << parameter.type << "\n";
    for (const std::string &reader : parameter.readers)
      out << "  read by " << reader << "\n";
    for (const std::string &kernel : parameter.gradient)
      out << "  gradient from " << kernel << "\n";
  }
  for (const AttendAnswer &attend : answer.attends)
    printAttend(attend, address.heads);
  if (!answer.kernels.empty()) {
    Table table({"kernel", "program", "calls", "FLOPs", "read", "written", "computes"}, {0, 1, 6});
    for (const KernelAnswer &kernel : answer.kernels)
      table.add(
          {kernel.kernel, kernel.program, std::to_string(kernel.calls),
           compact(kernel.cost.productFlops + kernel.cost.otherFlops), compact(kernel.cost.bytesRead, "B"),
           compact(kernel.cost.bytesWritten, "B"),
           absl::StrCat(absl::StrJoin(kernel.computes, " "), "  (", shortened(kernel.places),
                        kernel.also.empty() ? "" : absl::StrCat("; with ", absl::StrJoin(kernel.also, ", ")),
                        ")")});
    out << "kernels, with FLOPs and bytes of one call and the places in " << file << " that they compute:\n"
        << table.text();
  }
  for (const std::string &remark : answer.remarks)
    out << "remark: " << remark << "\n";
}

rt::OrderedJson weft::why::answerJson(const Answer &answer) {
  rt::OrderedJson json = {{"address", answer.address}};
  json["parameters"] = rt::OrderedJson::array();
  for (const ParameterAnswer &parameter : answer.parameters)
    json["parameters"].push_back({{"name", parameter.path},
                                  {"type", parameter.type},
                                  {"read_by", parameter.readers},
                                  {"gradient_from", parameter.gradient}});
  json["attends"] = rt::OrderedJson::array();
  for (const AttendAnswer &attend : answer.attends) {
    rt::OrderedJson windows = rt::OrderedJson::array();
    for (int64_t window : attend.windows)
      windows.push_back(window == std::numeric_limits<int64_t>::max() ? rt::OrderedJson("full")
                                                                      : rt::OrderedJson(window));
    json["attends"].push_back({{"scope", attend.scope}, {"windows", windows}});
    if (!attend.frozen.empty())
      json["attends"].back()["frozen"] = attend.frozen;
    if (!attend.pruned.empty())
      json["attends"].back()["pruned"] = attend.pruned;
    if (attend.positions > 0) {
      json["attends"].back()["acr"] = rt::contextRatio(attend.windows, attend.positions, attend.firstPlaces);
      json["attends"].back()["pair_ratio"] =
          rt::pairRatio(attend.windows, attend.positions, attend.firstPlaces);
    }
    for (const auto &[head, feature] : attend.features)
      json["attends"].back()["features"][std::to_string(head)] = feature;
  }
  json["kernels"] = rt::OrderedJson::array();
  for (const KernelAnswer &kernel : answer.kernels)
    json["kernels"].push_back({{"kernel", kernel.kernel},
                               {"program", kernel.program},
                               {"calls", kernel.calls},
                               {"product_flops", kernel.cost.productFlops},
                               {"other_flops", kernel.cost.otherFlops},
                               {"bytes_read", kernel.cost.bytesRead},
                               {"bytes_written", kernel.cost.bytesWritten},
                               {"computes", kernel.computes},
                               {"places", kernel.places},
                               {"shared_with", kernel.also}});
  json["remarks"] = answer.remarks;
  return json;
}
