//===- AttendCase.cpp - Attentions for tests of tile kernels --------------===//
#include "test/passes/Codegen/Gpu/AttendCase.h"

#include <bit>
#include <cmath>
#include <random>
#include <sstream>

namespace weft::test {

int32_t AttendCase::start(int64_t place) const {
  int32_t found = 0;
  for (int32_t at : starts)
    if (at <= place)
      found = at;
  return found;
}

double AttendCase::scale() const { return 1 / std::sqrt(static_cast<double>(channel)); }

std::string AttendCase::name() const {
  std::ostringstream text;
  text << "batch " << batch << ", length " << length << ", " << kvHeads << " x " << groups << " heads of "
       << channel << ", window " << windows[0] << ", " << starts.size() << " documents";
  return text.str();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

struct Types {
  std::string query, key, perQuery, windows, places, offset = "tensor<i32>";
};

std::string named(const std::string &sizes, const std::string &element, const std::string &axes) {
  return "tensor<" + sizes + "x" + element + ", #weft.axes<" + axes + ">>";
}

Types typesOf(const AttendCase &c, const std::string &element) {
  auto text = [](int64_t number) { return std::to_string(number); };
  std::string front = text(c.batch) + "x" + text(c.length);
  std::string keyFront = text(c.batch) + "x" + text(c.keyCount());
  std::string keyAxis = c.keys ? "keys" : "pos";
  std::string heads = text(c.kvHeads) + "x" + text(c.groups), channel = "x" + text(c.channel);
  return {named(front + "x" + heads + channel, element, "batch, pos, kv, group, head"),
          named(keyFront + "x" + text(c.kvHeads) + channel, element, "batch, " + keyAxis + ", kv, head"),
          named(front + "x" + heads, "f32", "batch, pos, kv, group"), "tensor<" + text(c.heads()) + "xi32>",
          named(front, "i32", "batch, pos")};
}

struct Argument {
  std::string name, stored, computed;
};

/// Arguments and results, converted on the way where they are stored otherwise.
std::string kernelText(const std::vector<Argument> &arguments, const std::vector<Argument> &results,
                       const std::string &op) {
  auto list = [](const std::vector<Argument> &values, auto text) {
    std::string all;
    for (const Argument &value : values)
      all += (all.empty() ? "" : ", ") + text(value);
    return all;
  };
  std::string body;
  for (const Argument &a : arguments)
    if (a.stored != a.computed)
      body += "%" + a.name + "f = weft.convert %" + a.name + " : (" + a.stored + ") -> " + a.computed + "\n";
  body += list(results, [](const Argument &a) { return "%" + a.name; }) + " = " + op + " : (" +
          list(arguments, [](const Argument &a) { return a.computed; }) + ") -> (" +
          list(results, [](const Argument &a) { return a.computed; }) + ")\n";
  for (const Argument &a : results)
    if (a.stored != a.computed)
      body += "%" + a.name + "s = weft.convert %" + a.name + " : (" + a.computed + ") -> " + a.stored + "\n";
  auto last = [](const Argument &a) { return "%" + a.name + (a.stored != a.computed ? "s" : ""); };
  return "weft.kernel @k rows [] chunks 1 (" +
         list(arguments, [](const Argument &a) { return "%" + a.name + ": " + a.stored; }) + ") -> (" +
         list(results, [](const Argument &a) { return a.stored; }) + ") {\n" + body + "weft.yield " +
         list(results, last) + " : " + list(results, [](const Argument &a) { return a.stored; }) + " }";
}

std::string orderText(const std::vector<int32_t> &order) {
  std::string text;
  for (int32_t head : order)
    text += (text.empty() ? "" : ", ") + std::to_string(head);
  return order.empty() ? "" : " order [" + text + "]";
}

std::string tail(const AttendCase &c, const std::vector<int32_t> &order) {
  std::ostringstream scale;
  scale.precision(17);
  scale << std::scientific << c.scale();
  return (c.kvOf.empty() ? "" : " kv_of %t") + orderText(order) + " {scale = " + scale.str() + " : f64}";
}

} // namespace

std::string AttendCase::forwardText() const {
  Types stored = typesOf(*this, "bf16"), t = typesOf(*this, "f32");
  std::vector<Argument> in{{"q", stored.query, t.query},
                           {"k", stored.key, t.key},
                           {"v", stored.key, t.key},
                           {"w", t.windows, t.windows},
                           {"d", t.places, t.places}};
  if (offset >= 0)
    in.push_back({"p", t.offset, t.offset});
  if (!kvOf.empty())
    in.push_back({"t", t.windows, t.windows});
  std::vector<Argument> results{{"o", stored.query, t.query}, {"l", t.perQuery, t.perQuery}};
  std::string attributes = tail(*this, order);
  if (entropies) {
    results.push_back({"h", t.perQuery, t.perQuery});
    attributes.insert(attributes.find('{') + 1, "entropies, ");
  }
  return kernelText(in, results,
                    std::string("weft.attend %qf, %kf, %vf windows %w documents %d") +
                        (offset >= 0 ? " offset %p" : "") + attributes);
}

std::string AttendCase::queryText() const {
  Types stored = typesOf(*this, "bf16"), t = typesOf(*this, "f32");
  std::vector<Argument> in{{"q", stored.query, t.query},  {"k", stored.key, t.key},
                           {"v", stored.key, t.key},      {"w", t.windows, t.windows},
                           {"d", t.places, t.places},     {"o", stored.query, t.query},
                           {"l", t.perQuery, t.perQuery}, {"g", stored.query, t.query}};
  if (!kvOf.empty())
    in.push_back({"t", t.windows, t.windows});
  return kernelText(in, {{"dq", stored.query, t.query}, {"e", t.perQuery, t.perQuery}},
                    "weft.attend_grad_query %qf, %kf, %vf windows %w documents %d, %of, %l, %gf" +
                        tail(*this, order));
}

std::string AttendCase::keyValueText() const {
  Types stored = typesOf(*this, "bf16"), t = typesOf(*this, "f32");
  std::vector<Argument> in{{"q", stored.query, t.query},  {"k", stored.key, t.key},
                           {"v", stored.key, t.key},      {"w", t.windows, t.windows},
                           {"d", t.places, t.places},     {"l", t.perQuery, t.perQuery},
                           {"e", t.perQuery, t.perQuery}, {"g", stored.query, t.query}};
  if (!kvOf.empty())
    in.push_back({"t", t.windows, t.windows});
  return kernelText(in, {{"dk", stored.key, t.key}, {"dv", stored.key, t.key}},
                    "weft.attend_grad_key_value %qf, %kf, %vf windows %w documents %d, %l, %e, %gf" +
                        tail(*this, keyOrder));
}

//===----------------------------------------------------------------------===//
// Float64 loops
//===----------------------------------------------------------------------===//

double toBf16(double value) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  constexpr uint32_t kHalf = 0x7fff, kDropped = 16;
  bits += kHalf + ((bits >> kDropped) & 1);
  return std::bit_cast<float>(bits >> kDropped << kDropped);
}

namespace {

class Loops {
public:
  Loops(const AttendCase &c, AttendNumbers &n) : c(c), n(n), width(static_cast<size_t>(c.channel)) {}

  void forward();
  void backward(bool rounded, std::vector<double> &dq, std::vector<double> &dk, std::vector<double> &dv);

private:
  size_t query(int64_t b, int64_t i, int64_t h) const {
    return static_cast<size_t>((b * c.length + i) * c.heads() + h);
  }
  size_t key(int64_t b, int64_t j, int64_t h) const {
    return static_cast<size_t>((b * c.keyCount() + j) * c.kvHeads + c.kv(h));
  }
  double dot(const std::vector<double> &x, size_t i, const std::vector<double> &y, size_t j) const {
    double sum = 0;
    for (size_t d = 0; d < width; ++d)
      sum += x[i * width + d] * y[j * width + d];
    return sum;
  }
  void addTo(std::vector<double> &sum, size_t i, double factor, const std::vector<double> &x,
             size_t j) const {
    for (size_t d = 0; d < width; ++d)
      sum[i * width + d] += factor * x[j * width + d];
  }
  int64_t own(int64_t i) const { return i + (c.offset > 0 ? c.offset : 0); }
  int64_t first(int64_t i, int64_t h) const {
    return std::max<int64_t>({0, c.start(i), own(i) - c.window(h) + 1});
  }
  template <class Visit> void forEachQuery(Visit visit) const {
    for (int64_t b = 0; b < c.batch; ++b)
      for (int64_t i = 0; i < c.length; ++i)
        for (int64_t h = 0; h < c.heads(); ++h)
          visit(b, i, h);
  }

  const AttendCase &c;
  AttendNumbers &n;
  size_t width;
};

void Loops::forward() {
  size_t rows = static_cast<size_t>(c.batch * c.length * c.heads());
  n.out.assign(rows * width, 0);
  n.roundOut.assign(rows * width, 0);
  n.lse.assign(rows, 0);
  n.entropy.assign(rows, 0);
  forEachQuery([&](int64_t b, int64_t i, int64_t h) {
    size_t row = query(b, i, h);
    std::vector<double> scores;
    double most = -INFINITY, total = 0;
    for (int64_t j = first(i, h); j <= own(i); ++j) {
      scores.push_back(c.scale() * dot(n.q, row, n.k, key(b, j, h)));
      most = std::max(most, scores.back());
    }
    for (double score : scores)
      total += std::exp(score - most);
    for (size_t s = 0; s < scores.size(); ++s) {
      double power = std::exp(scores[s] - most);
      n.entropy[row] += power / total * (most + std::log(total) - scores[s]);
      size_t from = key(b, first(i, h) + static_cast<int64_t>(s), h);
      addTo(n.out, row, power / total, n.v, from);
      addTo(n.roundOut, row, toBf16(power) / total, n.v, from);
    }
    n.lse[row] = most + std::log(total);
    for (size_t d = 0; d < width; ++d)
      n.roundOut[row * width + d] = toBf16(n.roundOut[row * width + d]);
  });
}

/// With `rounded`, p and ds in bf16 and out as it is stored.
void Loops::backward(bool rounded, std::vector<double> &dq, std::vector<double> &dk,
                     std::vector<double> &dv) {
  auto round = [rounded](double x) { return rounded ? toBf16(x) : x; };
  dq.assign(n.q.size(), 0);
  dk.assign(n.k.size(), 0);
  dv.assign(n.v.size(), 0);
  forEachQuery([&](int64_t b, int64_t i, int64_t h) {
    size_t row = query(b, i, h);
    double delta = dot(n.dout, row, rounded ? n.roundOut : n.out, row);
    for (int64_t j = first(i, h); j <= own(i); ++j) {
      size_t from = key(b, j, h);
      double p = std::exp(c.scale() * dot(n.q, row, n.k, from) - n.lse[row]);
      double ds = round(p * (dot(n.dout, row, n.v, from) - delta));
      addTo(dq, row, c.scale() * ds, n.k, from);
      addTo(dk, from, c.scale() * ds, n.q, row);
      addTo(dv, from, round(p), n.dout, row);
    }
  });
  for (auto *sums : {&dq, &dk, &dv})
    for (double &sum : *sums)
      sum = round(sum);
}

} // namespace

AttendNumbers attendNumbers(const AttendCase &c, uint32_t seed, bool gradients) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  auto fill = [&](std::vector<double> &values, int64_t rows, double spread) {
    values.resize(static_cast<size_t>(rows * c.channel));
    for (double &value : values)
      value = toBf16(spread * normal(random));
  };
  AttendNumbers n;
  fill(n.q, c.batch * c.length * c.heads(), c.spread);
  fill(n.k, c.batch * c.keyCount() * c.kvHeads, 1);
  fill(n.v, c.batch * c.keyCount() * c.kvHeads, 1);
  Loops loops(c, n);
  loops.forward();
  if (!gradients)
    return n;
  fill(n.dout, c.batch * c.length * c.heads(), 1);
  loops.backward(false, n.dq, n.dk, n.dv);
  loops.backward(true, n.roundDq, n.roundDk, n.roundDv);
  for (size_t row = 0; row < n.lse.size(); ++row) {
    double sum = 0;
    for (size_t d = 0; d < static_cast<size_t>(c.channel); ++d)
      sum += n.dout[row * static_cast<size_t>(c.channel) + d] *
             n.roundOut[row * static_cast<size_t>(c.channel) + d];
    n.delta.push_back(sum);
  }
  return n;
}

} // namespace weft::test
