// SPDX-License-Identifier: Apache-2.0
// How the tools end when something is wrong: a line on stderr, whatever the names of a file hold and whatever breaks.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// Prints `PROGRAM: error: MESSAGE` and returns `status`. Control characters and bytes that are no UTF-8 are shown as
/// \xNN; words and messages that are longer than anybody reads lose their middles.
int fail(const char *program, int status, const std::string &message);
/// The same, with a line `PROGRAM: note: NOTE` for each of the notes.
int fail(const char *program, int status, const std::string &message, const std::vector<std::string> &notes);
/// Prints `PROGRAM: note: NOTE` on stderr for each of the notes.
void printNotes(const char *program, const std::vector<std::string> &notes);

/// Says that the working folder is gone, as after somebody removed it, and gives the exit status for that, or nothing
/// where it is there. Relative paths, and the solver of integer programs, need one.
std::optional<int> failWithoutFolder(const char *program);

/// Turns signals of broken code, failed assertions, fatal errors of LLVM and exceptions that nobody catches into one
/// line and exit status 4. Of the main thread stack overflows, too: they are reported from a stack of their own. The
/// name must outlive the program.
void reportCrashes(const char *program);
/// What the line names: the input at hand.
void setCrashContext(const std::string &input);
/// Called before a crash ends the program, in a signal handler: for what must not be left behind. Null: nothing.
void setCrashCleanup(void (*cleanup)());
/// Ends the program as a crash does.
[[noreturn]] void crash(const char *what, const char *detail = "");

} // namespace sluice
