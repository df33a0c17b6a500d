//===- checkpoint-test.cpp - Saving and loading state -----------*- C++ -*-===//
#include "runtime/core/Safetensors.h"
#include "runtime/train/State.h"
#include "test/runtime/train/TrainSetup.h"

#include <chrono>
#include <csignal>
#include <limits>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_format.h"

namespace weft::rt {
namespace {

namespace fs = std::filesystem;

CheckpointInfo infoAt(int64_t step) {
  CheckpointInfo info;
  info.model = "bigram";
  info.step = step;
  info.totalSteps = 100;
  info.seed = 0xffffffffffffffff;
  info.source = "model bigram {}\n";
  return info;
}

struct CheckpointTest : testing::Test {
  CheckpointTest() : machine(smallOptions()) {
    EXPECT_TRUE(initializeState(machine, 1).ok());
    EXPECT_TRUE(makeFolders(folder).ok());
  }
  absl::StatusOr<std::string> save(int64_t step, int64_t keep = 2) {
    return saveCheckpoint(folder, machine, infoAt(step), keep);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto &entry : fs::directory_iterator(folder))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  Scratch scratch;
  std::string folder = scratch / "checkpoints";
  BigramMachine machine;
};

// Mutation caught: run.json that does not say whether there was a controller.
TEST_F(CheckpointTest, ALostControllerIsNamed) {
  CheckpointInfo info = infoAt(3);
  absl::StatusOr<std::string> without = saveCheckpoint(folder, machine, info, 9);
  ASSERT_TRUE(without.ok()) << without.status();
  ASSERT_TRUE(readControlState(*without).ok());
  EXPECT_FALSE(readControlState(*without)->has_value());
  info.step = 4;
  info.control = ControlState{{{"acr", 0.5}}, {}};
  absl::StatusOr<std::string> with = saveCheckpoint(folder, machine, info, 9);
  ASSERT_TRUE(with.ok()) << with.status();
  ASSERT_TRUE(readControlState(*with).ok()) << readControlState(*with).status();
  EXPECT_EQ((*readControlState(*with))->json["acr"], 0.5);
  fs::remove(*with + "/controller.safetensors");
  EXPECT_EQ(readControlState(*with).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(CheckpointTest, RoundTripsStateAndInfo) {
  Tensor moment(ElementType::F32, {16, 16});
  set(moment, 17, -2.25);
  ASSERT_TRUE(machine.writeState("adamw.m/table", moment).ok());
  absl::StatusOr<std::string> saved = save(5);
  ASSERT_TRUE(saved.ok()) << saved.status();
  BigramMachine other(smallOptions());
  Tensor stale(ElementType::F32, {16, 16});
  set(stale, 3, 1);
  ASSERT_TRUE(other.writeState("grad/table", stale).ok());
  ASSERT_TRUE(loadCheckpoint(*saved, other, LoadPart::ParametersAndMoments).ok());
  for (const char *name : {"table", "adamw.m/table", "adamw.v/table", "grad/table"})
    EXPECT_EQ(machine.readState(name)->bytes, other.readState(name)->bytes) << name;
  absl::StatusOr<CheckpointInfo> info = readCheckpointInfo(*saved);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->step, 5);
  EXPECT_EQ(info->seed, 0xffffffffffffffff);
  EXPECT_EQ(info->source, "model bigram {}\n");
}

TEST_F(CheckpointTest, ParametersAloneLeaveNoMoments) {
  Tensor moment(ElementType::F32, {16, 16});
  set(moment, 17, 1);
  ASSERT_TRUE(machine.writeState("adamw.m/table", moment).ok());
  absl::StatusOr<std::string> saved = save(5);
  ASSERT_TRUE(saved.ok());
  ASSERT_TRUE(loadCheckpoint(*saved, machine, LoadPart::Parameters).ok());
  EXPECT_EQ(get(*machine.readState("adamw.m/table"), 17), 0);
}

TEST_F(CheckpointTest, RotationKeepsTheNewest) {
  for (int64_t step : {5, 10, 15})
    ASSERT_TRUE(save(step).ok());
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-00000010", "step-00000015"}));
  ASSERT_TRUE(save(20, 1).ok());
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-00000020"}));
  ASSERT_TRUE(save(25, 0).ok()); // keep 0 still keeps the one just written
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-00000025"}));
}

TEST_F(CheckpointTest, SavingAStepAgainReplacesIt) {
  ASSERT_TRUE(save(5).ok());
  Tensor table(ElementType::F32, {16, 16});
  set(table, 0, 42);
  ASSERT_TRUE(machine.writeState("table", table).ok());
  ASSERT_TRUE(save(5).ok());
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-00000005"}));
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::open(folder + "/step-00000005/model.safetensors");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(get(*file->read("table"), 0), 42);
}

// A write that fails half way: with keep 1, the one before still loads.
TEST_F(CheckpointTest, AFullDiskLeavesTheLastGoodOne) {
  ASSERT_TRUE(save(5, 1).ok());
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit small{1100, old.rlim_max}; // model.safetensors takes more
  ::setrlimit(RLIMIT_FSIZE, &small);
  absl::StatusOr<std::string> saved = save(10, 1);
  ::setrlimit(RLIMIT_FSIZE, &old);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string text(saved.status().message());
  for (const char *part : {"model.safetensors", "needed", "free"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-00000005"}));
  absl::StatusOr<std::string> found = findCheckpoint(folder);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(loadCheckpoint(*found, machine, LoadPart::ParametersAndMoments).ok());
}

/// All weights of the machine are `value`.
void fill(Machine &machine, float value) {
  for (const StateEntry &entry : machine.executable().states) {
    Tensor tensor(entry.type, entry.shape);
    for (int64_t i = 0; i < tensor.elements(); ++i)
      set(tensor, i, value);
    ASSERT_TRUE(machine.writeState(entry.name, tensor).ok());
  }
}

/// Saves step after step, forever; the weights of step N are N.
[[noreturn]] void saveForever(const std::string &folder, int64_t step) {
  BigramMachine machine(smallOptions());
  for (;; ++step) {
    fill(machine, static_cast<float>(step));
    if (!saveCheckpoint(folder, machine, infoAt(step), 2).ok())
      ::_exit(1);
  }
}

// K3. Whenever the process is killed, the newest checkpoint is there, whole, of one
// step, and not older than the one before. Mutation caught: files written under their
// final names.
TEST_F(CheckpointTest, FiftyKillsDuringSavesLeaveAWholeOne) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  fill(machine, 2);
  ASSERT_TRUE(save(1).ok() && save(2).ok());
  const auto length = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start) / 2;
  int64_t newest = 2;
  for (int kill = 0; kill < 50; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      saveForever(folder, newest + kill % 2);
    // Odd kills come anywhere inside the save after a new one, even ones inside the
    // saving of the newest step again: fiftieths of a save's length, twice over.
    const std::string first = absl::StrFormat("%s/step-%08d", folder, newest + 1);
    for (int wait = 0; kill % 2 == 1 && wait < 20000 && !fs::exists(first); ++wait)
      ::usleep(1000);
    ::usleep(static_cast<useconds_t>(length.count() * (kill * 2) / 50));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a save failed";
    absl::StatusOr<std::string> found = findCheckpoint(folder);
    ASSERT_TRUE(found.ok()) << found.status();
    absl::StatusOr<CheckpointInfo> info = readCheckpointInfo(*found);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_GE(info->step, newest); // `latest` may be one behind what is whole
    newest = info->step;
    ASSERT_TRUE(loadCheckpoint(*found, machine, LoadPart::ParametersAndMoments).ok());
    for (const StateEntry &entry : machine.executable().states)
      if (entry.role == StateEntry::Role::Parameter || entry.role == StateEntry::Role::Moment) {
        ASSERT_EQ(get(*machine.readState(entry.name), 0), static_cast<double>(newest)) << entry.name;
      }
  }
  removeLeftovers(folder);
  for (const std::string &name : names())
    EXPECT_NE(name[0], '.') << name << " was left";
}

TEST_F(CheckpointTest, BrokenWeightsAreNotSaved) {
  ASSERT_TRUE(save(5, 1).ok());
  Tensor table(ElementType::F32, {16, 16});
  set(table, 9, std::numeric_limits<double>::quiet_NaN());
  ASSERT_TRUE(machine.writeState("table", table).ok());
  absl::StatusOr<std::string> saved = save(10, 1);
  ASSERT_FALSE(saved.ok());
  EXPECT_NE(std::string(saved.status().message()).find("'table' is not finite at step 10"),
            std::string::npos);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step-00000005"}));
}

TEST_F(CheckpointTest, FindsTheHighestStepWithoutLatest) {
  ASSERT_TRUE(save(5, 3).ok());
  ASSERT_TRUE(save(10, 3).ok());
  fs::remove(folder + "/latest");
  EXPECT_TRUE(fs::equivalent(*findCheckpoint(scratch / ""), folder + "/step-00000010"));
  EXPECT_EQ(*findCheckpoint(folder + "/step-00000005"), folder + "/step-00000005");
  absl::StatusOr<std::string> none = findCheckpoint(scratch / "nothing");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointTest, AnotherModelIsRefusedBothWays) {
  absl::StatusOr<std::string> saved = save(5);
  ASSERT_TRUE(saved.ok());
  BigramOptions wider = smallOptions();
  wider.vocabulary = 17;
  BigramMachine other(wider);
  absl::Status status = loadCheckpoint(*saved, other, LoadPart::Parameters);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("the model has shape [17, 17], the file [16, 16]"),
            std::string::npos);

  Tensor value(ElementType::F32, {2});
  ASSERT_TRUE(writeSafetensors(*saved + "/model.safetensors", {{"tabel", ElementType::F32, {2}}},
                               [&](const std::string &) { return value; })
                  .ok());
  status = loadCheckpoint(*saved, machine, LoadPart::Parameters);
  ASSERT_FALSE(status.ok());
  const std::string text(status.message());
  EXPECT_NE(text.find("it lacks: table"), std::string::npos) << text;
  EXPECT_NE(text.find("the model lacks: tabel"), std::string::npos) << text;
}

TEST_F(CheckpointTest, ADamagedInfoIsNamed) {
  absl::StatusOr<std::string> saved = save(5);
  ASSERT_TRUE(saved.ok());
  ASSERT_TRUE(writeFileAtomic(*saved + "/run.json", "{\"format\": 1, \"model\": 3}").ok());
  absl::StatusOr<CheckpointInfo> info = readCheckpointInfo(*saved);
  ASSERT_FALSE(info.ok());
  EXPECT_NE(std::string(info.status().message()).find("'model': expected a string, found 3"),
            std::string::npos);
}

TEST(RunDirectory, IsMadeOnceAndHeldByOneProcess) {
  Scratch scratch;
  absl::StatusOr<RunDirectory> run = RunDirectory::create(scratch / "run", "text");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(*readFile(scratch / "run/run.weft"), "text");
  EXPECT_EQ(RunDirectory::create(scratch / "run", "other").status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(RunDirectory::open(scratch / "run").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RunDirectory::open(scratch / "none").status().code(), absl::StatusCode::kNotFound);
}

// A run that could not begin leaves nothing; what was there before, and a run that
// trained, stay. Mutations caught: the whole folder removed; one with lines removed.
TEST(RunDirectory, DiscardsOnlyWhatItMade) {
  Scratch scratch;
  {
    absl::StatusOr<RunDirectory> run = RunDirectory::create(scratch / "new", "text");
    ASSERT_TRUE(run.ok()) << run.status();
    run->discardUnused();
  }
  EXPECT_FALSE(fs::exists(scratch / "new"));
  ASSERT_TRUE(makeFolders(scratch / "old").ok());
  ASSERT_TRUE(writeFileAtomic(scratch / "old/note", "mine").ok());
  {
    absl::StatusOr<RunDirectory> run = RunDirectory::create(scratch / "old", "text");
    ASSERT_TRUE(run.ok()) << run.status();
    run->discardUnused();
  }
  EXPECT_TRUE(fs::exists(scratch / "old/note"));
  EXPECT_FALSE(fs::exists(scratch / "old/run.weft"));
  absl::StatusOr<RunDirectory> run = RunDirectory::create(scratch / "used", "text");
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(run->log({{"step", 1}}).ok());
  run->discardUnused();
  EXPECT_TRUE(fs::exists(scratch / "used/run.weft"));
}

TEST(RunDirectory, InAReadOnlyPlaceNamesThePath) {
  absl::StatusOr<RunDirectory> run = RunDirectory::create("/proc/weft-run", "text");
  ASSERT_FALSE(run.ok());
  EXPECT_NE(std::string(run.status().message()).find("/proc/weft-run"), std::string::npos);
}

TEST(RunDirectory, TrimsLinesPastAStepAndTornOnes) {
  Scratch scratch;
  absl::StatusOr<RunDirectory> run = RunDirectory::create(scratch / "run", "text");
  ASSERT_TRUE(run.ok());
  TrainLine line;
  for (line.step = 1; line.step <= 5; ++line.step)
    ASSERT_TRUE(run->log(toJson(line)).ok());
  const std::string path = scratch / "run/log.jsonl";
  ASSERT_TRUE(writeFileAtomic(path, *readFile(path) + "{\"kind\":\"tra").ok());
  ASSERT_TRUE(run->trimLog(3).ok());
  EXPECT_EQ(logLines(scratch / "run", "train").size(), 3u);
  ASSERT_TRUE(run->log(toJson(line)).ok()); // goes on in the same file
  EXPECT_EQ(logLines(scratch / "run", "train").back()["step"], 6);
}

TEST(Log, WritesNotFiniteNumbersAsNull) {
  TrainLine line;
  line.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(dumpJson(toJson(line))
                .rfind("{\"kind\":\"train\",\"step\":0,\"tokens\":0,\"loss\":null,\"lr\":0.0,", 0),
            0u);
}

TEST(Log, SaysWhenTheDiskIsFull) {
  absl::StatusOr<LineFile> file = LineFile::open("/dev/full");
  ASSERT_TRUE(file.ok());
  absl::Status status = file->append("line");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

} // namespace
} // namespace weft::rt
