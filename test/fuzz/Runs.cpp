// What runs and caches leave on disk, and what names data: decisions of plans, lists
// of heads, the controller's state, chosen algorithms, object files, R's tables, tasks.
#include "test/fuzz/Targets.h"

#include "runtime/control/FreezeRecord.h"
#include "runtime/control/FreezeSelect.h"
#include "runtime/core/Json.h"
#include "runtime/cpu/ObjectImage.h"
#include "runtime/cuda/Choices.h"
#include "runtime/data/Corpus.h"
#include "runtime/data/Mqar.h"
#include "runtime/train/Checkpoint.h"

#include <cstring>
#include <filesystem>

#include <elf.h>
#include <zlib.h>

namespace weft::fuzz {

std::string decisions(const std::string &input) {
  absl::StatusOr<rt::Json> json = rt::parseJson(input, "input");
  if (!json.ok())
    return outcomeOf(json.status());
  absl::StatusOr<rt::FreezeRecord> record = rt::readFreezeRecord(*json);
  if (!record.ok())
    return outcomeOf(record.status());
  for (const auto &[name, progress] : record->statements)
    if (absl::Status status = rt::LossTrigger(4, 0.1).restore(progress.trigger); !status.ok())
      return outcomeOf(status);
  require(rt::readFreezeRecord({{"freeze", rt::toJson(*record)}}).ok(), "what was written can't be read");
  return record->empty() ? "ok, empty" : "ok";
}

std::vector<std::string> decisionsSeeds() {
  return {R"({"freeze": {"positions": 64, "frozen": {"block.0.attn": {"heads": [0, 2], "windows": [8, 64],)"
          R"( "first_places": [0, 64], "trained": true, "dense": false}}, "pruned": {"block.1.attn": [1]},)"
          R"( "statements": {"p/0": {"installed": 1, "tried": 2, "due": -1, "spent": 0.5, "done": true,)"
          R"( "planned": [{"site": "block.1.attn", "head": 3}], "trigger": [1.5, 1.25]}}, "events": []}})"};
}

std::string namedHeads(const std::string &input) {
  return outcomeOf(rt::readHeads(fileWith(input, "heads.json")).status());
}

std::vector<std::string> namedHeadsSeeds() {
  return {R"({"heads": [{"layer": 0, "site": "block.0.attn", "head": 1, "score": 0.5, "chosen": true},)"
          R"( {"layer": 1, "head": 0}, {"layer": 1, "head": 2, "chosen": false}]})"};
}

std::string controller(const std::string &input) {
  const std::string path = fileWith(input, "controller.safetensors");
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const std::string outcome = outcomeOf(rt::readControlState(folder).status());
  std::filesystem::remove(path); // `checkpoint` reads the same folder
  return outcome;
}

std::vector<std::string> controllerSeeds() {
  const std::string header =
      R"({"__metadata__":{"controller":"{\"step\": 3}"},"ema":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  return {file + header + std::string(8, '\0')};
}

std::string choices(const std::string &input) {
  // The file's name is a hash of the identity: it is found by what a write leaves.
  static const std::string folder =
      std::filesystem::path(fileWith("", "kept")).parent_path().string() + "/choices";
  static const std::string path = [] {
    std::filesystem::create_directories(folder);
    rt::cuda::Choices made(folder, "device");
    made.keep("problem", {rt::cuda::LtHeuristic{}, rt::cuda::LtHeuristic{}}, 1);
    made.write();
    for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file())
        return entry.path().string();
    return std::string();
  }();
  require(!path.empty(), "choices can't be written");
  fileWith(input, ("choices" + path.substr(folder.size())).c_str());
  const rt::cuda::Choices read(folder, "device");
  const std::vector<rt::cuda::LtHeuristic> two(2);
  if (std::optional<size_t> number = read.find("problem", two))
    require(*number < two.size(), "a choice that was not proposed");
  return read.remark().empty() ? "ok" : outcomeOf(absl::DataLossError(read.remark()));
}

std::vector<std::string> choicesSeeds() {
  return {R"({"identity": "device", "choices": [{"problem": "p", "proposals": "00", "number": 1}]})"};
}

std::string object(const std::string &input) {
  const std::string_view view = input;
  return outcomeOf(rt::ObjectImage::load({&view, 1}).status()); // mapped, never run
}

/// A function of one byte with a constant that it points to: what every kernel has.
std::vector<std::string> objectSeeds() {
  const std::string names("\0.text\0.rodata\0.rela.text\0.symtab\0.strtab\0f\0c\0", 46);
  Elf64_Sym symbols[3] = {};
  symbols[1] = {41, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0, 16};
  symbols[2] = {43, ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), 0, 2, 0, 8};
  const Elf64_Rela relocation = {4, ELF64_R_INFO(2, R_X86_64_PC32), -4};
  const std::string parts[] = {std::string(16, '\xc3'), std::string(8, '\7'),
                               std::string(reinterpret_cast<const char *>(&relocation), sizeof relocation),
                               std::string(reinterpret_cast<const char *>(symbols), sizeof symbols), names};
  Elf64_Shdr sections[6] = {};
  std::string file(sizeof(Elf64_Ehdr), '\0');
  for (size_t i = 0; i < 5; ++i) {
    sections[i + 1].sh_offset = file.size();
    sections[i + 1].sh_size = parts[i].size();
    sections[i + 1].sh_addralign = 8;
    file += parts[i] + std::string((8 - parts[i].size() % 8) % 8, '\0');
  }
  auto describe = [&](size_t at, Elf64_Word name, Elf64_Word type, Elf64_Xword flags) -> Elf64_Shdr & {
    sections[at].sh_name = name, sections[at].sh_type = type, sections[at].sh_flags = flags;
    return sections[at];
  };
  describe(1, 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR);
  describe(2, 7, SHT_PROGBITS, SHF_ALLOC);
  Elf64_Shdr &table = describe(3, 15, SHT_RELA, 0);
  table.sh_entsize = sizeof(Elf64_Rela), table.sh_link = 4, table.sh_info = 1;
  Elf64_Shdr &symbolTable = describe(4, 26, SHT_SYMTAB, 0);
  symbolTable.sh_entsize = sizeof(Elf64_Sym), symbolTable.sh_link = 5, symbolTable.sh_info = 1;
  describe(5, 34, SHT_STRTAB, 0);
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT, header.e_version = EV_CURRENT;
  header.e_type = ET_REL, header.e_machine = EM_X86_64, header.e_ehsize = sizeof header;
  header.e_shoff = file.size(), header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 6, header.e_shstrndx = 5;
  std::memcpy(file.data(), &header, sizeof header);
  return {file + std::string(reinterpret_cast<const char *>(sections), sizeof sections)};
}

/// The input as a block of R's: its packing guards everything behind it.
std::string rTable(const std::string &input) {
  uLongf size = compressBound(input.size());
  std::string file(4 + size, '\0');
  for (size_t i = 0; i < 4; ++i)
    file[i] = static_cast<char>(input.size() >> (24 - 8 * i));
  compress(reinterpret_cast<Bytef *>(file.data() + 4), &size, reinterpret_cast<const Bytef *>(input.data()),
           input.size());
  file.resize(4 + size);
  rt::readRdb(input).status().IgnoreError();
  return outcomeOf(rt::readRdb(file).status());
}

std::vector<std::string> rTableSeeds() {
  auto big = [](uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes += static_cast<char>(value >> shift);
    return bytes;
  };
  const std::string head = "X\n" + big(3) + big(0x40201) + big(0x30500) + big(5) + "UTF-8";
  return {head + big(16) + big(2) + big(0x40009) + big(3) + "one" + big(0x40009) + big(0),
          "X\n" + big(2) + big(0) + big(0) + big(254)};
}

std::string task(const std::string &input) {
  absl::StatusOr<std::optional<rt::MqarOptions>> options = rt::parseMqar(input, {});
  if (!options.ok() || !*options)
    return options.ok() ? "another name" : outcomeOf(options.status());
  absl::StatusOr<rt::Mqar> made = rt::Mqar::make(**options);
  if (!made.ok())
    return outcomeOf(made.status());
  constexpr int64_t kLongest = 1 << 20; // longer rows are a question of memory alone
  if (made->options().length > kLongest)
    return "ok";
  std::vector<int32_t> inputs(static_cast<size_t>(made->options().length)), targets(inputs.size());
  made->row(5, inputs, targets);
  for (const int32_t id : inputs)
    require(id >= 0 && id < made->options().vocabulary, "an id outside the vocabulary");
  return "ok";
}

std::vector<std::string> taskSeeds() {
  return {"builtin:mqar/pairs=8,vocab=8192,rows=1000,passes=1,a=0.01,filler=on,seed=3"};
}

} // namespace weft::fuzz
