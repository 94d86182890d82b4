// SPDX-License-Identifier: Apache-2.0
// One object of all that is needed, its names tidied, then the two libraries of it.
#include "codegen/BuildLibrary.h"

#include "codegen/Home.h"
#include "codegen/RunCompiler.h"
#include "codegen/Text.h"
#include "codegen/Toolchain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <filesystem>
#include <set>

namespace fs = std::filesystem;
using namespace sluice;
using namespace sluice::codegen;

using Words = std::vector<std::string>;

std::string sluice::codegen::libraryIdentifier(const std::string &name) { return Names().unique(name); }

namespace {

/// The steps from source to library, each a file in the folder that the next one reads. Both libraries come of one
/// object, so that archive and shared object cannot differ.
class Builder {
public:
  Builder(Toolchain with, std::string header, fs::path folder, std::string name)
      : with(std::move(with)), header(std::move(header)), folder(std::move(folder)), name(std::move(name)) {}

  Status build(const std::string &source) {
    for (const auto &part : {&Builder::compile, &Builder::linkParts, &Builder::tidyNames, &Builder::linkShared,
                             &Builder::makeArchive, &Builder::writeHeader, &Builder::writePackage})
      if (Status done = (this->*part)(source); !done)
        return done;
    return Success{};
  }

private:
  std::string in(const std::string &file) const { return (folder / file).string(); }

  Status run(const std::string &program, const Words &arguments) const {
    Words all = {program};
    llvm::append_range(all, arguments);
    return runCompiler(program, all, folder.string());
  }
  /// One of binutils' programs, which compilers bring.
  Status runTool(const std::string &tool, const Words &arguments) const {
    auto found = llvm::sys::findProgramByName(with.binutils + tool);
    if (!found)
      return Error{"there is no '" + with.binutils + tool + "' to make the library with (Debian: binutils)"};
    return run(*found, arguments);
  }
  Status write(const std::string &file, const std::string &text) const {
    return writeText(folder.string(), file, text);
  }

  /// Every function in a section of its own, so that the linker can drop those that nobody calls.
  Status compile(const std::string &source) {
    Words arguments = {"-c"};
    llvm::append_range(arguments, with.inLibraries);
    llvm::append_range(arguments, with.compile);
    llvm::append_range(arguments, Words{source, "-o", in("library.o")});
    return run(with.compiler, arguments);
  }

  /// All that the functions of sluice.h need in one object: what reads images and tables goes here, before the linker
  /// would ask for their libraries.
  Status linkParts(const std::string &) {
    Words arguments = {"-r", "-nostdlib", "-o", in("whole.o"), "-Wl,--force-group-allocation,--gc-sections"};
    for (const std::string &function : functions())
      arguments.push_back("-Wl,-u," + function);
    llvm::append_range(arguments, Words{in("library.o"), with.runtime});
    return run(with.linker, arguments);
  }

  /// Nothing but the functions of sluice.h keeps a name that others could meet, and nothing that went asks for a
  /// library.
  Status tidyNames(const std::string &) {
    return runTool("objcopy", {"--strip-unneeded", "--wildcard", "--keep-global-symbol=sluice_*",
                               "--weaken-symbol=!sluice_program_*", "--weaken-symbol=sluice_*", in("whole.o")});
  }

  /// Names are exported by the version script alone, whatever the object's visibility says.
  Status linkShared(const std::string &) {
    if (Status written = write("exports.map", "{ global: sluice_*; local: *; };\n"); !written)
      return written;
    // -Wl splits at commas, which names may have.
    Words arguments = {"-shared",
                       "-o",
                       in("lib" + name + ".so"),
                       "-Xlinker",
                       "-soname=lib" + name + ".so",
                       "-Xlinker",
                       "--version-script=" + in("exports.map"),
                       "-Wl,--gc-sections,--as-needed,-s,-z,relro,-z,now",
                       in("whole.o")};
    llvm::append_range(arguments, with.link);
    return run(with.linker, arguments);
  }

  Status makeArchive(const std::string &) { return runTool("ar", {"rcs", in("lib" + name + ".a"), in("whole.o")}); }

  Status writeHeader(const std::string &) {
    return write(name + ".h", "/* A model that trains, as a library: written by sluicec. */\n" + header +
                                  "\n/* The model of this library, for sluice_options.program. */\n#ifdef __cplusplus\n"
                                  "extern \"C\"\n#endif\n    const sluice_program *" +
                                  program() + "(void);\n");
  }

  /// For pkg-config. The number is that of the interface.
  Status writePackage(const std::string &) {
    return write(name + ".pc", "# A model that trains, as a library: written by sluicec.\nName: " + name +
                                   "\nDescription: a model that trains\nVersion: 1\nCflags: -I${pcfiledir}\n"
                                   "Libs: -L${pcfiledir} -l" +
                                   name + " -Wl,-rpath,${pcfiledir}\n");
  }

  std::string program() const { return "sluice_program_" + libraryIdentifier(name); }

  /// What the header declares, and what it does not know.
  std::set<std::string> functions() const {
    std::set<std::string> names = {program()};
    const llvm::StringRef text = header;
    for (size_t at = text.find("sluice_"); at != llvm::StringRef::npos; at = text.find("sluice_", at + 1)) {
      const llvm::StringRef word = text.substr(at).take_while([](char c) { return llvm::isLower(c) || c == '_'; });
      if (text.substr(at + word.size()).starts_with("("))
        names.insert(word.str());
    }
    return names;
  }

  const Toolchain with;
  const std::string header; ///< text of sluice.h
  const fs::path folder;
  const std::string name;
};

} // namespace

Status sluice::codegen::buildLibrary(const std::string &source, const std::string &folder, const std::string &name,
                                     Target target, const std::string &cpu, const std::string &version) {
  Result<Toolchain> with = findToolchain(target, cpu);
  if (!with)
    return with.takeError();
  const fs::path header = findHome().headers / "runtime/library/sluice.h";
  auto text = llvm::MemoryBuffer::getFile(header.string());
  if (!text)
    return Error{"the library's header is missing: looked for " + header.string()};
  with->compile.push_back(versionFlag(version));
  return Builder(std::move(*with), (*text)->getBuffer().str(), folder, name).build(source);
}
