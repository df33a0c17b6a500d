//===- Attend.cpp - Attention on tiles for the GPU ------------------------===//
#include "passes/Codegen/Gpu/Attend.h"

#include "passes/Codegen/Gpu/AttendKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace weft {

tile::KernelOp AttendTile::kernel() { return *module->getOps<tile::KernelOp>().begin(); }

std::string readForm(StringRef text, AttendOptions &options) {
  const std::pair<StringRef, bool AttendOptions::*> flags[] = {
      {"producer", &AttendOptions::producer}, {"overlap", &AttendOptions::overlap},
      {"turns", &AttendOptions::turns},       {"columns", &AttendOptions::columns},
      {"deal", &AttendOptions::deal},         {"early", &AttendOptions::early},
      {"joint", &AttendOptions::joint},       {"ahead", &AttendOptions::ahead},
      {"halves", &AttendOptions::halves}};
  struct Size {
    StringRef name;
    int64_t AttendOptions::*at;
    std::initializer_list<int64_t> allowed;
  };
  const Size sizes[] = {
      {"groups", &AttendOptions::groups, {1, 2, 3}},  {"block", &AttendOptions::block, {32, 64, 128}},
      {"stages", &AttendOptions::stages, {2, 4, 8}},  {"own", &AttendOptions::own, {1, 2}},
      {"branches", &AttendOptions::branches, {1, 2}}, {"brief", &AttendOptions::brief, {1, 4, 8}}};
  SmallVector<StringRef> parts;
  text.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, given] = part.split('=');
    int64_t number = -1;
    if (given.getAsInteger(10, number))
      return ("'" + part + "': expected NAME=NUMBER").str();
    auto flag = llvm::find_if(flags, [&, name = name](auto &flag) { return flag.first == name; });
    auto size = llvm::find_if(sizes, [&, name = name](auto &size) { return size.name == name; });
    if (flag != std::end(flags) && (number == 0 || number == 1))
      options.*(flag->second) = number == 1;
    else if (size != std::end(sizes) && llvm::is_contained(size->allowed, number))
      options.*(size->at) = number;
    else
      return ("'" + part +
              "': expected producer, overlap, turns, columns, deal, early, joint, ahead or halves = 0 or 1; "
              "groups = 1 to 3; block = 32, 64 or 128; stages = 2, 4 or 8; own or branches = 1 or 2; "
              "brief = 1, 4 or 8")
          .str();
  }
  return "";
}

FailureOr<AttendOptions> formOf(KernelOp kernel) {
  AttendOptions options = AttendOptions::fastest();
  if (auto text = kernel->getAttrOfType<StringAttr>(kFormAttr))
    if (std::string problem = readForm(text, options); !problem.empty())
      return kernel.emitOpError("has a form that can't be read: ") << problem;
  return options;
}

/// Together no more than what 65,536 allow a thread at the start (tile.specialize, C3).
static void setRegisters(AttendTiling &tiling) {
  if (tiling.groups == 3)
    tiling.producerRegisters = 32, tiling.registers = 160;
  if (tiling.groups == 1) // starts with all that a thread can have
    tiling.registers = 256;
}

/// Tiles whose registers ptxas keeps without spilling: 65,536 a CTA.
static AttendTiling tilingOf(const AttendProblem &p, const GpuTarget &target, const AttendOptions &options) {
  AttendTiling tiling;
  if (target.chip == "sm_80") {
    tiling.synchronous = true;
    tiling.groups = 1;
    tiling.block = p.pass == AttendPass::KeyValue && p.channel > 64 ? 32 : 64;
    return tiling;
  }
  bool narrow = p.channel == 64, keys = p.pass == AttendPass::KeyValue;
  tiling.producer = options.producer;
  tiling.overlap = options.overlap && options.producer;
  tiling.turns = options.turns && options.producer && options.overlap && p.pass == AttendPass::Forward;
  tiling.columns = options.columns && options.producer && keys;
  tiling.deal = options.deal && options.producer;
  tiling.early = options.early && keys;
  tiling.joint = options.joint && keys;
  tiling.ahead = options.ahead;
  tiling.halves = options.halves && tiling.overlap && p.pass == AttendPass::Forward;
  tiling.branches = narrow && p.entropy < 0 ? 2 : 1;
  tiling.brief = narrow ? 8 : 1;
  switch (p.pass) {
  case AttendPass::Forward:
    tiling.groups = narrow ? 3 : 2, tiling.block = 128;
    if (options.producer)
      tiling.stages = narrow ? 4 : tiling.stages, tiling.ownStages = 2;
    break;
  case AttendPass::Query:
    tiling.groups = 2, tiling.block = narrow ? 128 : 64;
    tiling.stages = options.producer ? 4 : 2;
    tiling.ownStages = options.producer && narrow ? 2 : 1;
    break;
  case AttendPass::KeyValue:
    tiling.groups = 2, tiling.block = narrow ? 64 : options.producer ? 64 : 32;
    tiling.stages = options.producer ? 4 : 2;
    tiling.ownStages = options.producer && narrow ? 2 : 1;
    break;
  }
  auto choose = [](int64_t &size, int64_t wanted) { size = wanted ? wanted : size; };
  choose(tiling.block, options.block);
  if (options.producer)
    tiling.groups = groupsFor(p, tiling.block);
  choose(tiling.groups, options.groups);
  // Where no item takes turns, ptxas spills a hundred bytes a thread of three warpgroups.
  while (tiling.groups == 3 && tiling.brief > 1 && p.keys <= tiling.brief * tiling.block)
    tiling.brief /= 2;
  choose(tiling.stages, options.stages);
  choose(tiling.branches, options.branches);
  choose(tiling.brief, options.brief);
  if (options.producer)
    choose(tiling.ownStages, options.own);
  tiling.turns &= tiling.groups > 1;
  // Larger tiles of keys leave no registers for products of the block before.
  tiling.overlap &= !keys || tiling.block * p.channel <= 64 * 64;
  tiling.lazy = tiling.block * p.channel > 64 * 64;
  setRegisters(tiling);
  return tiling;
}

rt::AttendTiles attendTiles(int64_t channel, const GpuTarget &target) {
  if (channel != 64 && channel != 128)
    return {};
  auto tiling = [&](AttendPass pass) {
    AttendProblem problem;
    problem.pass = pass;
    problem.channel = channel;
    return tilingOf(problem, target, AttendOptions::fastest());
  };
  AttendTiling forward = tiling(AttendPass::Forward), keys = tiling(AttendPass::KeyValue);
  return {forward.block, tiling(AttendPass::Query).block, keys.block, keys.groups * AttendKernel::kRows,
          forward.halves};
}

std::string whyNoAttendTile(KernelOp kernel, const GpuTarget &target) {
  std::string why;
  readAttend(kernel, target, why);
  return why;
}

std::optional<int64_t> attendItems(KernelOp kernel, const GpuTarget &target) {
  std::string why;
  auto problem = readAttend(kernel, target, why);
  if (!problem)
    return std::nullopt;
  FailureOr<AttendOptions> options = formOf(kernel);
  if (failed(options))
    return std::nullopt;
  return AttendKernel::itemCount(*problem, tilingOf(*problem, target, *options));
}

FailureOr<AttendTile> buildAttendTile(KernelOp kernel, const GpuTarget &target,
                                      const AttendOptions &options) {
  std::string why;
  auto problem = readAttend(kernel, target, why);
  if (!problem)
    return kernel.emitOpError("has no kernel on tiles: ") << why;
  kernel.getContext()
      ->loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  AttendTiling tiling = tilingOf(*problem, target, options);
  auto make = problem->pass == AttendPass::Forward ? makeAttendForward
              : problem->pass == AttendPass::Query ? makeAttendQuery
                                                   : makeAttendKeyValue;
  AttendTile tile = make(kernel.getLoc(), *problem, tiling)->build();
  if (failed(mlir::verify(*tile.module)))
    return failure();
  return tile;
}

} // namespace weft
