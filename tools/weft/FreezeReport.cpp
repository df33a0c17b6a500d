//===- FreezeReport.cpp - What a decision about heads says ----------------===//

#include "tools/weft/FreezeReport.h"

#include "llvm/Support/FormatVariadic.h"

using namespace weft;

rt::OrderedJson weft::entryOf(const rt::HeadCandidate &candidate, const rt::HeadChoice &choice,
                              const Measured *measured, const rt::PatternDistances *distances,
                              const rt::PatternCut *sees) {
  rt::OrderedJson entry = {{"layer", rt::layerOf(candidate.site)},
                           {"site", candidate.site},
                           {"head", candidate.head},
                           {"score", choice.score},
                           {"kl", candidate.kl},
                           {"chosen", choice.chosen},
                           {"reason", choice.reason}};
  for (const auto &[word, value] : candidate.scores)
    entry[word] = value;
  if (measured) {
    entry["entropy"] = measured->statistics.entropy;
    entry["recent"] = measured->statistics.recent;
    entry["first"] = measured->statistics.first;
    entry["rounds"] = measured->fit.rounds;
    entry["rows_unreached"] = measured->fit.rowsUnreached;
  }
  if (distances)
    entry["distances"] = {{"frobenius", distances->frobenius},
                          {"kl", distances->kl},
                          {"hellinger", distances->hellinger},
                          {"variation", distances->variation}};
  if (sees) {
    entry["window"] = sees->window;
    if (sees->firstPlaces > 0)
      entry["first_places"] = sees->firstPlaces;
  }
  return entry;
}

rt::OrderedJson weft::summaryOf(const rt::OrderedJson &heads) {
  rt::OrderedJson sides, sites;
  for (const char *side : {"chosen", "unchosen"})
    for (const char *word : {"entropy", "recent", "first"}) {
      double sum = 0;
      int64_t count = 0;
      for (const rt::OrderedJson &head : heads)
        if (head.contains(word) && head["chosen"].get<bool>() == (std::string(side) == "chosen")) {
          sum += head[word].get<double>();
          ++count;
        }
      if (count > 0)
        sides[side][word] = sum / static_cast<double>(count);
    }
  for (const rt::OrderedJson &head : heads) {
    const std::string site = head["site"].get<std::string>();
    sites[site] =
        (sites.contains(site) ? sites[site].get<int64_t>() : 0) + (head["chosen"].get<bool>() ? 1 : 0);
  }
  return {{"means", sides}, {"by_site", sites}};
}

rt::OrderedJson weft::comparisonOf(const std::vector<rt::HeadCandidate> &candidates,
                                   const rt::HeadChoices &choices, const rt::Ranking &earlier) {
  rt::Ranking now;
  for (const rt::HeadChoice &choice : choices.ranked) {
    const rt::HeadCandidate &head = candidates[choice.candidate];
    now.push_back({head.site, rt::layerOf(head.site), head.head, choice.chosen});
  }
  const rt::Agreement found = rt::agreementOf(now, earlier);
  return {{"heads", found.heads},     {"chosen", found.chosen},      {"chosen_then", found.chosenThen},
          {"overlap", found.overlap}, {"by_chance", found.byChance}, {"spearman", found.spearman},
          {"kendall", found.kendall}};
}

std::string weft::tableOf(const rt::OrderedJson &report) {
  auto count = [&](const char *word) { return report[word].get<int64_t>(); };
  std::string text =
      llvm::formatv("step {0}: {1} by {2}: {3} of {4} heads chosen, {5} wanted, {6} passed over; "
                    "{7} now\n",
                    count("step"), report["action"].get<std::string>(), report["by"].get<std::string>(),
                    count("chosen"), count("eligible"), count("wanted"), count("passed_over"),
                    report["installed"].size())
          .str();
  text += "  site                 head  score       kl (nats)  entropy  newest 64  first   \n";
  for (const rt::OrderedJson &head : report["heads"]) {
    auto number = [&](const char *word) { return head.contains(word) ? head[word].get<double>() : 0.0; };
    text += llvm::formatv("  {0,-20} {1,4}  {2,-10:E3}  {3,-9:F4}  {4,-7:F3}  {5,-9:F3}  {6,-6:F3}  {7}\n",
                          head["site"].get<std::string>(), head["head"].get<int64_t>(), number("score"),
                          number("kl"), number("entropy"), number("recent"), number("first"),
                          head["chosen"].get<bool>() ? "chosen" : head["reason"].get<std::string>())
                .str();
  }
  for (const rt::OrderedJson &head : report["heads"])
    if (head.contains("first_places"))
      text += llvm::formatv("  {0}.heads[{1}] sees its first {2} places and the newest {3}\n",
                            head["site"].get<std::string>(), head["head"].get<int64_t>(),
                            head["first_places"].get<int64_t>(), head["window"].get<int64_t>())
                  .str();
  if (report.contains("kept_pairs"))
    text += llvm::formatv("  {0:P1} of the pairs of places are left in the patterns\n",
                          report["kept_pairs"].get<double>())
                .str();
  if (report.contains("against")) {
    const rt::OrderedJson &against = report["against"];
    text += llvm::formatv("  of {0} heads in both rankings {1} are chosen now, {2} were then, {3} both times "
                          "({4:F1} by chance); rank correlation {5:F3} (Spearman), {6:F3} (Kendall)\n",
                          against["heads"].get<int64_t>(), against["chosen"].get<int64_t>(),
                          against["chosen_then"].get<int64_t>(), against["overlap"].get<int64_t>(),
                          against["by_chance"].get<double>(), against["spearman"].get<double>(),
                          against["kendall"].get<double>())
                .str();
  }
  if (count("chosen") < count("wanted"))
    text += llvm::formatv("  {0} of {1} wanted: the others fit worse than the tolerance\n", count("chosen"),
                          count("wanted"))
                .str();
  return text;
}
