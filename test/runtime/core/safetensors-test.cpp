//===- safetensors-test.cpp - Named tensors, honest and lying files -*- C++ -*-===//
#include "runtime/core/File.h"
#include "runtime/core/Safetensors.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

namespace fs = std::filesystem;

struct SafetensorsTest : testing::Test {
  SafetensorsTest() {
    std::string pattern = (fs::temp_directory_path() / "weft-st-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  ~SafetensorsTest() override { fs::remove_all(root); }

  /// A file of this header and data, length prefix included.
  static std::string bytesOf(const std::string &header, const std::string &data) {
    std::string bytes;
    for (uint64_t i = 0, length = header.size(); i < 8; ++i, length >>= 8)
      bytes.push_back(static_cast<char>(length & 255));
    return bytes + header + data;
  }
  absl::StatusOr<SafetensorsFile> openBytes(const std::string &bytes,
                                            const std::string &name = "t.safetensors") {
    EXPECT_TRUE(writeFileAtomic(root + "/" + name, bytes).ok());
    return SafetensorsFile::open(root + "/" + name);
  }
  std::string refusal(const std::string &header, const std::string &data) {
    return std::string(openBytes(bytesOf(header, data)).status().message());
  }
  std::string root;
};

template <typename T> void put(std::string &data, T value) {
  data.append(reinterpret_cast<const char *>(&value), sizeof value);
}

// Header length 7 mod 8, an F32 that starts at byte 6: a cast of the pointer is undefined.
TEST_F(SafetensorsTest, ReadsTensorsThatStartAnywhere) {
  std::string header = R"({"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},)"
                       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[6,14]}})";
  while (header.size() % 8 != 7)
    header += ' ';
  std::string data;
  for (uint16_t bits : {0x3f80, 0xc000, 0x4049}) // 1, -2, 3.140625
    put(data, bits);
  put(data, 1.5f);
  put(data, -2.25f);
  absl::StatusOr<SafetensorsFile> file = openBytes(bytesOf(header, data));
  ASSERT_TRUE(file.ok()) << file.status();
  absl::StatusOr<Tensor> b = file->read("b");
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b->as<float>()[0], 1.5f);
  EXPECT_EQ(b->as<float>()[1], -2.25f);
  absl::StatusOr<Tensor> a = file->readAs("a", ElementType::F32);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->as<float>()[0], 1.0f);
  EXPECT_EQ(a->as<float>()[1], -2.0f);
  EXPECT_EQ(a->as<float>()[2], 3.140625f);
  EXPECT_EQ(file->read("a")->type, ElementType::BF16);
  EXPECT_EQ(file->read("c").status().code(), absl::StatusCode::kNotFound);
}

// Values from IEEE 754: 0x3c00 = 1, 0x0001 = 2^-24, 0x7bff = 65504, 0xfc00 = -inf, 0x3555 = 0.333251953125.
TEST_F(SafetensorsTest, WidensHalves) {
  std::string data;
  for (uint16_t bits : {0x3c00, 0x0001, 0x7bff, 0xfc00, 0x3555, 0x7e00})
    put(data, bits);
  absl::StatusOr<SafetensorsFile> file =
      openBytes(bytesOf(R"({"h":{"dtype":"F16","shape":[6],"data_offsets":[0,12]}})", data));
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->read("h").ok()); // Tensor has no such type
  const Tensor h = *file->readAs("h", ElementType::F64);
  const double expected[] = {1, std::ldexp(1, -24), 65504, -HUGE_VAL, 0.333251953125};
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(h.as<double>()[i], expected[i]) << i;
  EXPECT_TRUE(std::isnan(h.as<double>()[5]));
}

TEST_F(SafetensorsTest, RefusesEveryLie) {
  const std::string eight(8, 'x');
  auto entry = [](const std::string &shape, const std::string &range, const std::string &type = "F32") {
    return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + range + "}}";
  };
  const std::vector<std::pair<std::string, std::string>> lies = {
      {entry("[3]", "[0,8]"), "takes 12 bytes"},
      {entry("[2]", "[8,0]"), "data_offsets say 8 to 0"},
      {entry("[2]", "[4,12]"), "leaves a gap"},
      {entry("[4]", "[0,16]"), "cut short"},
      {entry("[1]", "[0,4]"), "no tensor owns"},
      {entry("[-2]", "[0,8]"), "'shape' is no list"},
      {entry("[2.0]", "[0,8]"), "'shape' is no list"},
      {entry("2", "[0,8]"), "'shape' is no list"},
      {entry("[2]", "[0,8,9]"), "'data_offsets' is no pair"},
      {entry("[2]", "[-1,8]"), "'data_offsets' is no pair"},
      {entry("[2]", "[0,8]", "F33"), "unknown dtype 'F33'"},
      {entry("[4294967296,4294967296]", "[0,8]"), "overflows"}, // 2^64 elements wrap to 0
      {entry("[4611686018427387904]", "[0,8]"), "overflows"},   // 2^62 x 4 bytes wrap to 0
      {entry("[9223372036854775809]", "[0,8]"), "overflows"},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "'dtype' is missing"},
      {R"({"a":3})", "expected an object"},
      {R"([1])", "no JSON object"},
      {R"({"a":)", "not JSON"},
      {R"({"__metadata__":{"k":1}})", "metadata 'k' is no string"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       "overlaps"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       "stands twice"}};
  for (const auto &[header, word] : lies) {
    const std::string text = refusal(header, eight);
    EXPECT_NE(text.find(word), std::string::npos) << header << "\n  gave: " << text;
    EXPECT_NE(text.find("t.safetensors"), std::string::npos) << text;
  }
}

TEST_F(SafetensorsTest, RefusesLengthsBeforeAllocating) {
  std::string huge(8, '\xff');
  EXPECT_FALSE(openBytes(huge + "{}").ok());
  EXPECT_FALSE(openBytes(std::string("\x03\0\0\0\0\0\0\0{}", 10)).ok()); // one byte more than there is
  EXPECT_FALSE(openBytes("1234567").ok());
  EXPECT_FALSE(openBytes("").ok());
  EXPECT_FALSE(SafetensorsFile::open(root).ok());
  EXPECT_TRUE(openBytes(bytesOf("{}", "")).ok());
}

// Random damage under a fixed seed: an answer every time, never a crash or a read outside.
TEST_F(SafetensorsTest, SurvivesDamage) {
  const std::string good = bytesOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                   R"("b":{"dtype":"I64","shape":[1,1],"data_offsets":[4,12]}})",
                                   std::string(12, '\1'));
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    for (uint64_t n = random() % 4 + 1; n > 0; --n)
      bad[random() % bad.size()] = static_cast<char>(random());
    if (random() % 4 == 0)
      bad.resize(random() % bad.size());
    const std::string path = root + "/bad";
    fs::remove(path); // rewriting in place would flush, 2,000 times
    std::FILE *out = std::fopen(path.c_str(), "wb");
    ASSERT_EQ(std::fwrite(bad.data(), 1, bad.size(), out), bad.size());
    std::fclose(out);
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::open(path);
    if (!file.ok())
      continue;
    for (const auto &[name, info] : file->tensors()) {
      EXPECT_LE(info.end, 12u);
      file->readAs(name, ElementType::F64).IgnoreError();
    }
  }
}

Tensor ramp(ElementType type, std::vector<int64_t> shape) {
  Tensor tensor(type, std::move(shape));
  for (size_t i = 0; i < tensor.bytes.size(); ++i)
    tensor.bytes[i] = static_cast<std::byte>(i + 1);
  return tensor;
}

TEST_F(SafetensorsTest, WritesAlignedFilesThatReadBack) {
  const std::map<std::string, Tensor> values = {{"half", ramp(ElementType::BF16, {3})},
                                                {"wide", ramp(ElementType::F64, {2})},
                                                {"scalar", ramp(ElementType::F32, {})},
                                                {"empty", ramp(ElementType::F32, {0, 4})},
                                                {"quote\"\n", ramp(ElementType::I32, {1, 2})}};
  std::vector<TensorToWrite> list;
  for (const auto &[name, value] : values)
    list.push_back({name, value.type, value.shape});
  const std::string path = root + "/out.safetensors";
  const std::map<std::string, std::string> metadata = {{"format", "weft"}};
  auto give = [&](const std::string &name) { return values.at(name); };
  ASSERT_TRUE(writeSafetensors(path, list, give, metadata).ok());

  const std::string bytes = *readFile(path);
  EXPECT_EQ(bytes.size(), safetensorsBytes(list, metadata));
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ((8 + length) % 8, 0u);
  EXPECT_EQ(bytes[8], '{');
  const std::string header = bytes.substr(8, length);
  EXPECT_EQ(header.find_last_not_of(' '), header.rfind('}'));

  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata(), metadata);
  ASSERT_EQ(file->tensors().size(), values.size());
  for (const auto &[name, value] : values) {
    absl::StatusOr<Tensor> read = file->read(name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->bytes, value.bytes) << name;
    EXPECT_EQ(read->shape, value.shape) << name;
    EXPECT_EQ(file->tensors().at(name).begin % sizeOf(value.type), 0u) << name;
  }
}

TEST_F(SafetensorsTest, WritesNothingWhenAValueIsWrong) {
  const std::string path = root + "/out.safetensors";
  auto give = [&](const std::string &) { return ramp(ElementType::F32, {3}); };
  absl::Status status = writeSafetensors(path, {{"a", ElementType::F32, {2}}}, give);
  EXPECT_NE(std::string(status.message()).find("expected F32 [2], found F32 [3]"), std::string::npos);
  status = writeSafetensors(path, {{"a", ElementType::F32, {3}}, {"a", ElementType::F32, {3}}}, give);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(fs::is_empty(root));
}

struct ShardsTest : SafetensorsTest {
  void writeShard(const std::string &file, const std::string &name) {
    auto give = [&](const std::string &) { return ramp(ElementType::F32, {2}); };
    ASSERT_TRUE(writeSafetensors(root + "/" + file, {{name, ElementType::F32, {2}}}, give).ok());
  }
  void writeIndex(const std::string &map) {
    ASSERT_TRUE(
        writeFileAtomic(root + "/model.safetensors.index.json", R"({"weight_map":)" + map + "}").ok());
  }
};

TEST_F(ShardsTest, ReadAsOneTableWithStraysLeftOut) {
  writeShard("1.safetensors", "a");
  writeShard("2.safetensors", "b");
  writeShard("stray.safetensors", "a");
  writeIndex(R"({"a":"1.safetensors","b":"2.safetensors"})");
  absl::StatusOr<SafetensorsSet> set = SafetensorsSet::open(root);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(set->ignored(), std::vector<std::string>{"stray.safetensors"});
  EXPECT_EQ(set->readAs("b", ElementType::F32)->bytes, ramp(ElementType::F32, {2}).bytes);
  EXPECT_EQ(set->info("c"), nullptr);
}

TEST_F(ShardsTest, AbsentAndDisagreeingOnesAreRefused) {
  writeShard("1.safetensors", "a");
  auto refusalOf = [&](const std::string &map) {
    writeIndex(map);
    return std::string(SafetensorsSet::open(root).status().message());
  };
  EXPECT_NE(refusalOf(R"({"a":"1.safetensors","b":"2.safetensors"})").find("not there: 2.safetensors"),
            std::string::npos);
  EXPECT_NE(refusalOf(R"({"b":"1.safetensors"})").find("'a' lies in '1.safetensors'"), std::string::npos);
  EXPECT_NE(refusalOf(R"({"a":"1.safetensors","b":"1.safetensors"})").find("'b' is not in its shard"),
            std::string::npos);
  EXPECT_NE(refusalOf(R"({"a":"../1.safetensors"})").find("no plain file name"), std::string::npos);
}

} // namespace
} // namespace weft::rt
