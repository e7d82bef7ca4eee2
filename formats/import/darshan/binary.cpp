// SPDX-License-Identifier: MIT
// The layout of binary logs is libdarshan-util's business; only the magic number is known here (darshan-log-format.h).
#include "formats/import/darshan/binary.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "formats/support/error.h"
#include "formats/support/input.h"
#include "formats/support/limits.h"

extern char** environ;

namespace reprise::darshan {
namespace {

constexpr int kNoModule = 90;  // exit code of the script
constexpr std::string_view kRemedy =
    "install it (pip install darshan), or convert the log: darshan-dxt-parser LOG >job.dxt.txt";

// What darshan-dxt-parser prints, with all digits that the times have. The directory it runs in is no place for
// modules.
constexpr const char* kScript = R"(
import sys
sys.path = [place for place in sys.path if place]
try:
    import darshan.backend.cffi_backend as backend
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(90)

def fail(why):
    print(why, file=sys.stderr)
    sys.exit(1)

log = backend.log_open(sys.argv[1])
if log["handle"] == backend.ffi.NULL:
    fail("it is damaged, or of a version that this module does not know")
job, modules, names = backend.log_get_job(log), backend.log_get_modules(log), backend.log_get_name_records(log)
out = open(1, "w", encoding="utf-8", errors="surrogateescape")
one_line = lambda text: text.replace("\n", "\\n")
print("# darshan log version:", job["log_ver"], file=out)
print("# exe:", one_line(backend.log_get_exe(log)), file=out)
print("# start_time: %d.%09d" % (job["start_time_sec"], job.get("start_time_nsec", 0)), file=out)
print("# run time: %.9f" % job["run_time"], file=out)
for module in ("DXT_POSIX", "DXT_MPIIO"):
    if module not in modules:
        continue
    print("#", module, "module data", file=out)
    if modules[module].get("partial_flag"):
        print("# *WARNING*: The", module, "module contains incomplete data!", file=out)
    while (record := backend.log_get_dxt_record(log, module)) is not None:
        print("# DXT, file_id: %d, file_name: %s" % (record["id"], one_line(names.get(record["id"], ""))), file=out)
        print("# DXT, rank: %d, hostname: %s" % (record["rank"], one_line(record["hostname"])), file=out)
        print("# DXT, write_count: %d, read_count: %d" % (record["write_count"], record["read_count"]), file=out)
        for what in ("write", "read"):
            for number, call in enumerate(record[what + "_segments"]):
                print("X_%s %d %s %d %d %d %.9f %.9f" % (module[4:], record["rank"], what, number, call["offset"],
                      call["length"], call["start_time"], call["end_time"]), file=out)
out.close()
)";

class Actions {
public:
    Actions() { ::posix_spawn_file_actions_init(&actions_); }
    ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }
    Actions(const Actions&) = delete;
    Actions& operator=(const Actions&) = delete;
    void dup(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }
    void open_null(int fd) { ::posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDONLY, 0); }
    const posix_spawn_file_actions_t* get() const { return &actions_; }

private:
    posix_spawn_file_actions_t actions_{};
};

}  // namespace

bool is_binary(std::string_view head) {
    // A version, "3.41", in eight bytes, then the magic number in the writer's byte order.
    constexpr std::string_view kLittle("75d\0\0\0\0\0", 8), kBig("\0\0\0\0\0d57", 8);
    if (head.size() < 16 || !head.starts_with("3.")) {
        return false;
    }
    const std::string_view magic = head.substr(8, 8);
    return magic == kLittle || magic == kBig;
}

Printer::Printer(const std::filesystem::path& log) : log_(std::filesystem::absolute(log)) {
    const UniqueFd file(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
    char head[16] = {};
    if (!file.valid() || ::read(file.get(), head, sizeof head) != sizeof head || !is_binary({head, sizeof head})) {
        throw bad_input(log.native(), "is a packed binary Darshan log",
                        "unpack it first; only Darshan's text is read packed");
    }
    start();
}

void Printer::start() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw machine_error(std::string("cannot make a pipe: ") + reason(errno), remedy(errno, {}));
    }
    text_.reset(ends[0]);
    const UniqueFd into(ends[1]);
    errors_.reset(::memfd_create("darshan", MFD_CLOEXEC));
    Actions actions;
    actions.open_null(0);
    actions.dup(into.get(), 1);
    actions.dup(errors_.get(), 2);
    char* const words[] = {const_cast<char*>("python3"), const_cast<char*>("-c"), const_cast<char*>(kScript),
                           const_cast<char*>(log_.c_str()), nullptr};
    if (const int error = ::posix_spawnp(&child_, words[0], actions.get(), nullptr, words, environ); error != 0) {
        child_ = -1;
        throw machine_error(
            escape_line(log_.native()) +
                ": is a binary Darshan log, which PyPI's darshan reads, and python3 cannot be run: " + reason(error),
            kRemedy);
    }
}

Printer::~Printer() {
    if (child_ > 0) {
        text_.reset();  // it ends when it writes on
        ::kill(child_, SIGTERM);
        while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

std::filesystem::path Printer::text() const { return "/proc/self/fd/" + std::to_string(text_.get()); }

// The last line that it wrote to its standard error.
std::string Printer::complaint() const {
    std::string text = read_small_file("/proc/self/fd/" + std::to_string(errors_.get())).value_or("");
    while (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    return escape_line(text.substr(text.rfind('\n') + 1));
}

void Printer::finish() {
    text_.reset();
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    const std::string why = WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status)) : complaint();
    // The library says "Error: ..." of a damaged log, and the module takes that for the log's end.
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !why.starts_with("Error:")) {
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoModule) {
        throw machine_error(
            escape_line(log_.native()) +
                ": is a binary Darshan log, which PyPI's darshan reads, and python3 cannot import that: " + complaint(),
            kRemedy);
    }
    throw bad_input(log_.native(), "PyPI's darshan cannot read this log: " + why,
                    "try darshan-dxt-parser of darshan-util, and import what it prints");
}

}  // namespace reprise::darshan
