//===- schedule-test.cpp - State, kernels and schedules --------------------===//
#include "test/dialects/Weft/Interpret/Fixture.h"

using namespace weft;
using namespace weft::test;

namespace {

const std::string kVector = "tensor<3xf32, #weft.axes<dim>>";
const std::string kKernels = "weft.state parameter @w <constant, 2.0 : f64> offset 0 : " + kVector + "\n" +
                             "weft.state gradient @\"grad/w\" <constant, 0.0 : f64> offset 64 : " + kVector +
                             "\n" + "weft.kernel @double rows [] chunks 1 (%x: " + kVector + ") -> " +
                             kVector + " {\n" + "%y = weft.binary add %x, %x : (" + kVector + ", " + kVector +
                             ") -> " + kVector + "\nweft.yield %y : " + kVector + "\n}\n" +
                             "weft.kernel @add rows [] chunks 1 (%x: " + kVector + ", %y: " + kVector +
                             ") -> " + kVector + " {\n" + "%z = weft.binary add %x, %y : (" + kVector + ", " +
                             kVector + ") -> " + kVector + "\nweft.yield %z : " + kVector + "\n}\n";

std::string program(const std::string &body, int arena = 64) {
  return kKernels + "weft.program @p inputs [\"x\"] [" + kVector + "] results [\"y\"] [" + kVector +
         "] arena " + std::to_string(arena) + " {\n%x = weft.buffer input at 0 : " + kVector +
         "\n%y = weft.buffer result at 0 : " + kVector + "\n" + body + "}\n";
}
std::string call(const std::string &kernel, const std::string &ins, int count, const std::string &out) {
  std::string types = kVector;
  for (int i = 1; i < count; ++i)
    types += ", " + kVector;
  return "weft.call @" + kernel + " ins(" + ins + " : " + types + ") outs(" + out + " : " + kVector +
         ") grid 1\n";
}

struct Schedule : Fixture {
  std::optional<llvm::SmallVector<Array>> runProgram(const std::string &text) {
    module = parse(text, /*verify=*/false); // the verifier refuses overlaps that are plain to see
    if (!module)
      return std::nullopt;
    EXPECT_TRUE(mlir::succeeded(initialize(states, *module, 1)));
    ProgramOp op = *module->getOps<ProgramOp>().begin();
    auto results = interpretProgram(op, {Array({3}, {1, 2, 3})}, states);
    if (mlir::failed(results))
      return std::nullopt;
    return std::move(*results);
  }
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST(ScheduleInterpreter, CallsInOrderAndState) {
  Schedule schedule;
  auto results = schedule.runProgram(
      program("%a = weft.buffer arena at 0 : " + kVector + "\n%w = weft.buffer state at 0 : " + kVector +
              "\n%g = weft.buffer state at 64 : " + kVector + "\n" + call("double", "%x", 1, "%a") +
              call("add", "%a, %w", 2, "%y") + call("add", "%g, %a", 2, "%g")));
  ASSERT_TRUE(results) << schedule.messages;
  EXPECT_EQ((*results)[0].data, (std::vector<double>{4, 6, 8}));
  EXPECT_EQ(schedule.states["grad/w"].data, (std::vector<double>{2, 4, 6})); // in place
  EXPECT_EQ(schedule.states["w"].data, (std::vector<double>{2, 2, 2}));
}

// Catches: an arena of zeros, which would hide a missing write.
TEST(ScheduleInterpreter, WhatNothingWroteIsNaN) {
  Schedule schedule;
  auto results = schedule.runProgram(
      program("%a = weft.buffer arena at 0 : " + kVector + "\n" + call("add", "%x, %a", 2, "%y")));
  ASSERT_TRUE(results) << schedule.messages;
  EXPECT_TRUE(std::isnan((*results)[0].data[0]));
}

TEST(ScheduleInterpreter, OverlappingBuffersShow) {
  for (auto [offset, expected] : {std::pair{16, 3.0}, std::pair{4, 4.0}}) {
    Schedule schedule;
    auto results = schedule.runProgram(program(
        "%a = weft.buffer arena at 0 : " + kVector + "\n%b = weft.buffer arena at " + std::to_string(offset) +
        " : " + kVector + "\nweft.copy %x to %a : " + kVector + ", " + kVector + "\n" +
        call("double", "%x", 1, "%b") + "weft.copy %a to %y : " + kVector + ", " + kVector + "\n"));
    ASSERT_TRUE(results) << schedule.messages;
    EXPECT_EQ((*results)[0].data[2], expected); // at 4, the double of 2 replaces 3
  }
}

TEST(ScheduleInterpreter, ViewsFillsAndBounds) {
  const std::string pair = "tensor<2xf32, #weft.axes<dim>>";
  Schedule schedule;
  auto results = schedule.runProgram(program("weft.copy %x to %y : " + kVector + ", " + kVector +
                                             "\n%v = weft.view %y from 1 : (" + kVector + ") -> " + pair +
                                             "\nweft.fill %v : " + pair + "\n"));
  ASSERT_TRUE(results) << schedule.messages;
  EXPECT_EQ((*results)[0].data, (std::vector<double>{1, 0, 0}));
  Schedule outside;
  EXPECT_FALSE(outside.runProgram(program("%a = weft.buffer arena at 56 : " + kVector + "\n")));
  EXPECT_NE(outside.messages.find("bytes from 56"), std::string::npos) << outside.messages;
}

TEST(StateInterpreter, SetsComeAfterGets) {
  Fixture fixture;
  auto module =
      fixture.parse(kKernels + "func.func @f(%x: " + kVector + ") -> (" + kVector +
                    ", tensor<6xf32>) {\nweft.set @w, %x : " + kVector + "\n%w = weft.get @w : " + kVector +
                    "\n%l = weft.launch @add(%w, %x) : (" + kVector + ", " + kVector + ") -> " + kVector +
                    "\n%b = weft.get_flat [@w, @\"grad/w\"] : tensor<6xf32>\nreturn %l, %b : " + kVector +
                    ", tensor<6xf32>\n}");
  ASSERT_TRUE(module);
  ASSERT_TRUE(mlir::succeeded(initialize(fixture.states, *module, 1)));
  auto results = fixture.run(*module, {Array({3}, {1, 2, 3})});
  ASSERT_TRUE(results) << fixture.messages;
  EXPECT_EQ((*results)[0].data, (std::vector<double>{3, 4, 5})); // the w of the start
  EXPECT_EQ((*results)[1].data, (std::vector<double>{2, 2, 2, 0, 0, 0}));
  EXPECT_EQ(fixture.states["w"].data, (std::vector<double>{1, 2, 3}));
}

TEST(StateInterpreter, ErrorsNameWhatIsWrong) {
  Fixture fixture;
  auto module = fixture.parse(
      "func.func @f(%x: tensor<3xf64>) -> tensor<3xf64> {\n%y = \"func.call\"(%x) {callee = @f} : "
      "(tensor<3xf64>) -> tensor<3xf64>\nreturn %y : tensor<3xf64>\n}");
  ASSERT_TRUE(module);
  EXPECT_FALSE(fixture.run(*module, {Array({3}, {1, 2, 3})}));
  EXPECT_NE(fixture.messages.find("func.call"), std::string::npos) << fixture.messages;
  EXPECT_FALSE(fixture.run(*module, {Array({2}, {1, 2})}));
  EXPECT_NE(fixture.messages.find("another shape"), std::string::npos) << fixture.messages;
}

// cos 1 and sin 1 at position 1 of the first pair; half the pairs turn slower.
TEST(StateInterpreter, RopeTablesAreDouble) {
  Fixture fixture;
  auto module = fixture.parse("weft.state table @rope <rope_table, 10000.0 : f64> : tensor<2x2x2xf32, "
                              "#weft.axes<position, half, turn>>");
  ASSERT_TRUE(module);
  ASSERT_TRUE(mlir::succeeded(initialize(fixture.states, *module, 1)));
  std::vector<double> expected = {1, 0, 1, 0, std::cos(1.0), std::sin(1.0), std::cos(0.01), std::sin(0.01)};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_DOUBLE_EQ(fixture.states["rope"].data[i], expected[i]);
}

} // namespace
