#include "runtime/cpu/ObjectImage.h"

#include "test/runtime/cpu/CompileC.h"

#include <array>
#include <cstring>
#include <random>

#include <elf.h>

namespace weft::rt {
namespace {

/// Constants, a table of addresses (R_X86_64_64 in .data.rel.ro), own calls,
/// libc's three functions: every relocation that kernels have.
constexpr const char *kSource = R"(
#include <string.h>
static const int primes[] = {2, 3, 5, 7, 11, 13, 17, 19};
static const int squares[] = {0, 1, 4, 9, 16, 25, 36, 49};
const int *const tables[] = {primes, squares};
const double shared_constant = 2.5;
__attribute__((noinline)) int own(int which, int at) { return tables[which & 1][at & 7]; }
int lookUp(int which, int at) { return 100 * own(which, at) + (int)(2 * shared_constant); }
void *outside(unsigned char *to, const unsigned char *from, unsigned long n) {
  memset(to, 7, n); memcpy(to, from, n / 2); memmove(to + 1, to, n / 4);
  return to;
}
void *taken(int which) { return which ? (void *)&memcpy : (void *)&memset; }
)";

template <typename Function> Function *functionOf(const ObjectImage &image, size_t object, const char *name) {
  absl::StatusOr<void *> found = image.find(object, name);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? reinterpret_cast<Function *>(*found) : nullptr;
}

void expectWorks(const ObjectImage &image, size_t object) {
  auto *lookUp = functionOf<int(int, int)>(image, object, "lookUp");
  EXPECT_EQ(lookUp(0, 4), 1105);
  EXPECT_EQ(lookUp(1, 5), 2505);
  std::array<unsigned char, 40> from{}, to{};
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i + 100);
  functionOf<void *(unsigned char *, const unsigned char *, unsigned long)>(image, object, "outside")(
      to.data(), from.data(), to.size());
  EXPECT_EQ(to[0], 100);  // copied
  EXPECT_EQ(to[1], 100);  // moved by one
  EXPECT_EQ(to[10], 109); // the last byte moved: index 9 of the copy
  EXPECT_EQ(to[11], 111); // copied, not moved
  EXPECT_EQ(to[20], 7);   // set, not copied
}

// Catches a wrong addend, a slot shared by two symbols, a jump to the wrong function.
TEST(ObjectImage, RelocatesCodeConstantsAndTables) {
  for (const char *flags : {"", "-fno-plt", "-fno-plt -O0", "-ffunction-sections -fdata-sections"}) {
    SCOPED_TRACE(flags);
    std::string object = compileC(kSource, flags);
    std::string_view view = object;
    absl::StatusOr<ObjectImage> image = ObjectImage::load({&view, 1});
    ASSERT_TRUE(image.ok()) << image.status();
    expectWorks(*image, 0);
    auto *taken = functionOf<void *(int)>(*image, 0, "taken");
    std::array<unsigned char, 4> bytes{1, 2, 3, 4};
    reinterpret_cast<void *(*)(void *, int, unsigned long)>(taken(0))(bytes.data(), 9, 2);
    EXPECT_EQ(bytes, (std::array<unsigned char, 4>{9, 9, 3, 4}));
  }
}

// Catches sections of one object placed over, or resolved into, another's.
TEST(ObjectImage, KeepsObjectsApart) {
  std::string one = compileC("static const int value[64] = {[5] = 41}; int get(int i) { return value[i]; }");
  std::string two = compileC("static const int value[64] = {[5] = 42}; int get(int i) { return value[i]; }");
  std::string three = compileC(kSource);
  std::array<std::string_view, 3> views{one, two, three};
  absl::StatusOr<ObjectImage> image = ObjectImage::load(views);
  ASSERT_TRUE(image.ok()) << image.status();
  one.assign(one.size(), 'x'); // the image keeps nothing of the file
  EXPECT_EQ(functionOf<int(int)>(*image, 0, "get")(5), 41);
  EXPECT_EQ(functionOf<int(int)>(*image, 1, "get")(5), 42);
  expectWorks(*image, 2);
  ObjectImage moved = std::move(*image);
  EXPECT_EQ(functionOf<int(int)>(moved, 1, "get")(5), 42);
  EXPECT_EQ(moved.find(1, "lookUp").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(moved.find(7, "get").status().code(), absl::StatusCode::kNotFound);
}

std::string messageOf(const std::string &source, const char *flags = "") {
  std::string object = compileC(source, flags);
  std::string_view view = object;
  return std::string(ObjectImage::load({&view, 1}).status().message());
}

TEST(ObjectImage, RefusesWhatKernelsMayNotContain) {
  EXPECT_NE(messageOf("float expf(float); float f(float x) { return expf(x); }").find("'expf'"),
            std::string::npos);
  EXPECT_NE(messageOf("float expf(float); float f(float x) { return expf(x); }", "-fno-plt").find("'expf'"),
            std::string::npos);
  EXPECT_NE(messageOf("int counter = 3; int f() { return ++counter; }").find(".data"), std::string::npos);
  EXPECT_NE(messageOf("static int counter; int f() { return ++counter; }").find(".bss"), std::string::npos);
  EXPECT_NE(messageOf("_Thread_local int t = 1; int f() { return ++t; }").find("thread-local"),
            std::string::npos);
  // Absolute 32-bit addresses, as the non-PIC code model writes them.
  EXPECT_NE(messageOf("static const int v[99] = {1}; int f(long i) { return v[i]; }", "-fno-pic -fno-pie")
                .find("relocation type"),
            std::string::npos);
}

TEST(ObjectImage, NothingToLoadIsFine) {
  absl::StatusOr<ObjectImage> image = ObjectImage::load({});
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_FALSE(image->find(0, "f").ok());
}

TEST(ObjectImage, TruncatedFilesAreRefused) {
  std::string object = compileC(kSource);
  // The section table ends the file, so every shorter file lacks a part of it.
  for (size_t size = 0; size < object.size(); size += 7) {
    std::string part = object.substr(0, size); // its own allocation: a sanitizer sees a read past it
    std::string_view view = part;
    EXPECT_FALSE(ObjectImage::load({&view, 1}).ok()) << size;
  }
}

// No outcome is wrong but a crash: loading runs no code.
TEST(ObjectImage, FlippedBytesNeverCrash) {
  std::string object = compileC(kSource);
  std::mt19937 random(20240917);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string broken = object;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      broken[random() % broken.size()] = static_cast<char>(random());
    std::string_view view = broken;
    refused += !ObjectImage::load({&view, 1}).ok();
  }
  EXPECT_GT(refused, 1000);
}

// Found by libFuzzer. Mutation caught: the bytes of a section that says to be none taken from where it points.
TEST(ObjectImage, SectionsOfNoTypeAreNotLoaded) {
  const std::string object = compileC(kSource);
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof(header));
  for (size_t i = 1; i < header.e_shnum; ++i) {
    std::string broken = object;
    char *place = broken.data() + header.e_shoff + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    std::memcpy(&section, place, sizeof(section));
    section.sh_type = SHT_NULL, section.sh_flags = SHF_ALLOC, section.sh_size = 8;
    section.sh_offset = uint64_t(1) << 40;
    std::memcpy(place, &section, sizeof(section));
    std::string_view view = broken;
    (void)ObjectImage::load({&view, 1});
  }
}

// Flips above seldom meet a header: here every 8-byte word of the section table
// becomes huge, in turn.
TEST(ObjectImage, HugeNumbersInHeadersNeverCrash) {
  std::string object = compileC(kSource);
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof(header));
  for (uint64_t value : {UINT64_MAX, UINT64_MAX / 2, uint64_t(1) << 40, uint64_t(1) << 31})
    for (size_t at = 0; at + 8 <= object.size(); at += 4) {
      if (at >= sizeof(header) && at < header.e_shoff)
        continue;
      std::string broken = object;
      std::memcpy(broken.data() + at, &value, sizeof(value));
      std::string_view view = broken;
      (void)ObjectImage::load({&view, 1});
    }
}

} // namespace
} // namespace weft::rt
