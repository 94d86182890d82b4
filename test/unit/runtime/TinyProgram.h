// SPDX-License-Identifier: Apache-2.0
// tiny_program.cpp run as a process of its own, in a folder of its own.
#pragma once

#include "runtime/files/Safetensors.h"
#include "test/unit/runtime/Folder.h"

#include <map>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

using Json = nlohmann::json;

/// The variable that names what is loaded before the program, and into nothing else where that is emulated.
#ifdef SLUICE_EMULATOR
constexpr const char *preloadVariable = "EMULATED_PRELOAD";
#else
constexpr const char *preloadVariable = "LD_PRELOAD";
#endif

/// A copy of the program, its data, and what the last run said.
class TinyProgram : public testing::Test {
protected:
  TinyProgram() {
#ifdef SLUICE_EMULATOR
    // The system starts no program of another family of processors; a script of its name does.
    std::filesystem::copy_file(SLUICE_TINY_PROGRAM, folder / "emulated");
    folder.write("tiny", "#!/bin/sh\nexec " SLUICE_EMULATOR " ${" + std::string(preloadVariable) + ":+-E LD_PRELOAD=$" +
                             preloadVariable + "} -0 \"$0\" " + folder.path + "/emulated \"$@\"\n");
    std::filesystem::permissions(folder / "tiny", std::filesystem::perms::owner_all);
#else
    std::filesystem::copy_file(SLUICE_TINY_PROGRAM, folder / "tiny");
#endif
    // 22 samples, batch 4: five steps an epoch, two samples left over.
    for (int i = 0; i < 22 * 8; ++i)
      images.push_back(static_cast<float>((i * 37 % 101) - 50) / 25.0f);
    for (int i = 0; i < 22; ++i)
      labels.push_back(i * 7 % 3);
    writeData();
  }

  void writeData() {
    std::filesystem::create_directory(folder / "data");
    folder.write("data/input.npy", npyArray("<f4", "(22, 2, 2, 2)", images));
    folder.write("data/target.npy", npyArray("<i8", "(22,)", labels));
  }

  /// Runs the program in the folder. Returns the exit status; output and errors are kept in `out` and `err`.
  int run(const std::string &arguments, const std::string &variant = "") {
    return shell("./tiny " + arguments, variant);
  }
  int shell(const std::string &script, const std::string &variant = "") {
    std::string command = "cd " + folder.path + " && export TINY='" + variant + "' && ( " + script + " ) >out 2>err";
    int status = std::system(command.c_str());
    out = folder.read("out");
    err = folder.read("err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void expectFailure(int status, const std::string &arguments, const std::string &message,
                     const std::string &variant = "") {
    EXPECT_EQ(run(arguments, variant), status) << err;
    expectError(message);
  }
  void expectError(const std::string &message) {
    EXPECT_THAT(err, testing::StartsWith("tiny: error: "));
    EXPECT_THAT(err, testing::HasSubstr(message));
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
  }

  std::vector<Json> log(const std::string &name = "log.jsonl") const {
    std::vector<Json> lines;
    std::ifstream in(folder / name);
    for (std::string line; std::getline(in, line);)
      lines.push_back(Json::parse(line));
    return lines;
  }
  /// Losses of the log's steps, by step.
  std::map<int64_t, double> losses(const std::string &name) const {
    std::map<int64_t, double> result;
    for (const Json &line : log(name))
      if (line["event"] == "step")
        result[line["step"]] = line["loss"];
    return result;
  }
  std::vector<float> tensor(const std::string &file, const std::string &name, const sluice::Shape &shape) const {
    sluice::SafetensorsFile opened(folder / file);
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    opened.data().readAt(opened.find(name, sluice::DataType::F32, shape).offset, values.data(), values.size() * 4);
    return values;
  }

  /// A safetensors file without its checksums, as other programs write it.
  static std::string unchecked(const std::string &file) {
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    Json header = Json::parse(file.substr(8, length)), kept = Json::object();
    for (const auto &[key, value] : header["__metadata__"].items())
      if (key.rfind("crc32c", 0) != 0)
        kept[key] = value;
    header["__metadata__"] = kept;
    return safetensorsBytes(header.dump(), file.substr(8 + length));
  }

  Folder folder;
  std::vector<float> images;
  std::vector<int64_t> labels;
  std::string out, err;
};
