// SPDX-License-Identifier: MIT
#include "transform/anonymize.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/contents.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/held_memory.h"
#include "formats/oplog/installed_paths.h"
#include "formats/support/error.h"
#include "formats/support/path.h"
#include "transform/kernel_paths.h"

namespace reprise {
namespace {

// Devices whose names are the kernel's. Below /dev people name volume groups, pools and adapters.
constexpr std::string_view kDevices[] = {"null",          "zero",        "full",
                                         "random",        "urandom",     "tty",
                                         "ptmx",          "console",     "stdin",
                                         "stdout",        "kmsg",        "stderr",
                                         "fuse",          "kvm",         "loop-control",
                                         "mem",           "rtc",         "hpet",
                                         "kfd",           "vga_arbiter", "fd",
                                         "pts",           "dri",         "nvidia-caps",
                                         "nvidiactl",     "nvidia-uvm",  "nvidia-uvm-tools",
                                         "nvidia-modeset"};
// Followed by a number. Of a disk first by one or two letters, then perhaps by a partition's number.
constexpr std::string_view kNumberedDevices[] = {
    "loop", "nvidia", "tty",  "ttyS", "dm-",      "md",          "sr",
    "sg",   "ram",    "zram", "nbd",  "dri/card", "dri/renderD", "nvidia-caps/nvidia-cap"};
constexpr std::string_view kDisks[] = {"sd", "vd", "xvd", "hd"};
// What the kernel itself understands; other attributes have the names that programs gave them.
constexpr std::string_view kPublicAttributes[] = {"security.selinux", "security.capability", "security.ima",
                                                  "system.posix_acl_access", "system.posix_acl_default"};
constexpr std::string_view kNamespaces[] = {"user.", "trusted.", "security.", "system."};
// Components every system has, or that decide a role (formats/assemble/roles.cpp).
constexpr std::string_view kPublicNames[] = {
    "usr",          "bin",         "sbin",       "lib",           "lib32",
    "lib64",        "libx32",      "etc",        "run",           "var",
    "tmp",          "home",        "root",       "opt",           "mnt",
    "media",        "srv",         "boot",       "proc",          "sys",
    "dev",          "shm",         "local",      "share",         "include",
    "log",          "cache",       "spool",      "data",          "dataset",
    "datasets",     "ml",          "nix",        "snap",          "gnu",
    "stdin",        "stdout",      "stderr",     "site-packages", "dist-packages",
    "node_modules", "__pycache__", ".cache",     ".git",          ".pyenv",
    "pyenv",        "conda",       "miniconda3", "anaconda3",     "miniforge3",
    "mambaforge",   ".triton",     ".nv",        "checkpoint",    "checkpoints",
    "ckpt",         "ckpts",       "python",     "python3",       "unnamed",
    "libexec",      ".",           ".."};
// Marks with a meaning of their own (docs/markers.md).
constexpr std::string_view kPublicMarks[] = {"epoch", "step", "batch", "fetch"};
// What a log says of how it was made; other keys may hold anything.
constexpr size_t kLongestEnding = 8;
constexpr std::string_view kPackageEnding = ".dist-info";

template <size_t N>
bool is_any(std::string_view text, const std::string_view (&list)[N]) {
    return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

void skip_digits(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
}

// Takes `what` and the number behind it off the front.
bool skip_numbered(std::string_view& text, std::string_view what) {
    if (!text.starts_with(what)) {
        return false;
    }
    const size_t before = text.size() - what.size();
    text.remove_prefix(what.size());
    skip_digits(text);
    return text.size() < before;
}

// nvme0, nvme0n1, nvme0n1p2.
bool is_nvme(std::string_view name) {
    if (!skip_numbered(name, "nvme")) {
        return false;
    }
    return name.empty() || (skip_numbered(name, "n") && (name.empty() || (skip_numbered(name, "p") && name.empty())));
}

bool is_numbered(std::string_view name, std::string_view device) { return skip_numbered(name, device) && name.empty(); }

bool is_disk(std::string_view name, std::string_view kind) {
    if (!name.starts_with(kind)) {
        return false;
    }
    name.remove_prefix(kind.size());
    const size_t letters = std::min(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), name.size());
    name.remove_prefix(letters);
    skip_digits(name);
    return letters >= 1 && letters <= 2 && name.empty();
}

bool is_number(std::string_view name) {
    return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

// A device of the kernel's naming.
bool is_public_device(std::string_view path) {
    constexpr std::string_view kBelow = "/dev/";
    if (!path.starts_with(kBelow)) {
        return false;
    }
    const std::string_view name = path.substr(kBelow.size());
    constexpr std::string_view kTerminals = "pts/";
    if (name.starts_with(kTerminals)) {
        const std::string_view terminal = name.substr(kTerminals.size());
        return is_number(terminal) || terminal == "ptmx";
    }
    return is_any(name, kDevices) || is_nvme(name) ||
           std::any_of(std::begin(kNumberedDevices), std::end(kNumberedDevices),
                       [&](std::string_view device) { return is_numbered(name, device); }) ||
           std::any_of(std::begin(kDisks), std::end(kDisks),
                       [&](std::string_view kind) { return is_disk(name, kind); });
}

bool is_ending(std::string_view text) {
    const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    return !text.empty() && text.size() <= kLongestEnding && std::all_of(text.begin(), text.end(), letter);
}

// Where the extension that is kept begins: ".jpg", ".tar.gz", ".so.6". A name that is only an extension keeps none.
size_t ending_of(std::string_view name) {
    constexpr std::string_view kLibrary = ".so.";
    const size_t library = name.find(kLibrary);
    if (library != 0 && library != std::string_view::npos &&
        name.find_first_not_of("0123456789.", library + kLibrary.size()) == std::string_view::npos) {
        return library;
    }
    if (name.ends_with(kPackageEnding) && name != kPackageEnding) {
        return name.size() - kPackageEnding.size();
    }
    size_t at = name.size();
    for (int parts = 0; parts < 2; ++parts) {
        const size_t dot = name.rfind('.', at - 1);
        if (dot == std::string_view::npos || dot == 0 || !is_ending(name.substr(dot + 1, at - dot - 1))) {
            break;
        }
        // The second part counts before what is added to a whole name.
        const std::string_view last = name.substr(at);
        if (parts == 1 && last != ".gz" && last != ".zst" && last != ".bz2" && last != ".xz" && last != ".tmp") {
            break;
        }
        at = dot;
    }
    return at;
}

// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
class SipHash {
public:
    explicit SipHash(std::string_view key) {
        // Keys are texts of any length: folded into the 128 bits, each bit of it counts.
        std::array<uint64_t, 2> none{};
        const auto folded = digest(none, key);
        key_ = folded;
    }
    std::array<uint64_t, 2> operator()(std::string_view text) const { return digest(key_, text); }

private:
    static std::array<uint64_t, 2> digest(const std::array<uint64_t, 2>& key, std::string_view text) {
        uint64_t v0 = 0x736f6d6570736575u ^ key[0], v1 = 0x646f72616e646f6du ^ key[1] ^ 0xee;
        uint64_t v2 = 0x6c7967656e657261u ^ key[0], v3 = 0x7465646279746573u ^ key[1];
        const auto round = [&] {
            v0 += v1, v1 = std::rotl(v1, 13), v1 ^= v0, v0 = std::rotl(v0, 32);
            v2 += v3, v3 = std::rotl(v3, 16), v3 ^= v2;
            v0 += v3, v3 = std::rotl(v3, 21), v3 ^= v0;
            v2 += v1, v1 = std::rotl(v1, 17), v1 ^= v2, v2 = std::rotl(v2, 32);
        };
        const auto word = [&](uint64_t m) {
            v3 ^= m;
            round();
            round();
            v0 ^= m;
        };
        size_t i = 0;
        for (; i + 8 <= text.size(); i += 8) {
            uint64_t m = 0;
            std::memcpy(&m, text.data() + i, 8);
            word(m);
        }
        uint64_t last = static_cast<uint64_t>(text.size()) << 56;
        for (size_t k = 0; i + k < text.size(); ++k) {
            last |= static_cast<uint64_t>(static_cast<unsigned char>(text[i + k])) << (8 * k);
        }
        word(last);
        std::array<uint64_t, 2> out{};
        v2 ^= 0xee;
        for (int k = 0; k < 4; ++k) {
            round();
        }
        out[0] = v0 ^ v1 ^ v2 ^ v3;
        v1 ^= 0xdd;
        for (int k = 0; k < 4; ++k) {
            round();
        }
        out[1] = v0 ^ v1 ^ v2 ^ v3;
        return out;
    }

    std::array<uint64_t, 2> key_{};
};

}  // namespace

struct NameTokens::Impl {
    explicit Impl(const AnonymizeOptions& given) : options(given), hash(given.key) {}

    std::string token(std::string_view name) {
        const auto found = known.find(std::string(name));
        if (found != known.end()) {
            return found->second;
        }
        std::string made = options.key.empty() ? "n" + std::to_string(known.size() + 1) : hashed(name);
        // 80 bits: this does not happen, but two files must never become one.
        while (!options.key.empty() && !taken.insert(made).second) {
            made += "x";
        }
        return known.emplace(name, std::move(made)).first->second;
    }

    std::string hashed(std::string_view name) const {
        static constexpr char kDigits[] = "0123456789abcdefghjkmnpqrstvwxyz";
        auto [low, high] = hash(name);
        std::string out = "n";
        for (int i = 0; i < 16; ++i) {
            out += kDigits[low & 31];
            low = low >> 5 | high << 59;
            high >>= 5;
        }
        return out;
    }

    std::string component(std::string_view name) {
        if (is_any(name, kPublicNames) || (is_package_directory(name) && !name.ends_with(kPackageEnding))) {
            return std::string(name);
        }
        const bool hidden = name.starts_with('.');
        const size_t end = ending_of(name);
        return (hidden ? "." : "") + token(name.substr(hidden, end - hidden)) + std::string(name.substr(end));
    }

    AnonymizeOptions options;
    SipHash hash;
    std::unordered_map<std::string, std::string> known;
    std::unordered_set<std::string> taken;
};

NameTokens::NameTokens(const AnonymizeOptions& options) : impl_(std::make_unique<Impl>(options)) {}
NameTokens::~NameTokens() = default;

std::string NameTokens::path(std::string_view path) {
    if (is_public_device(path)) {
        return std::string(path);
    }
    for (const std::string& keep : impl_->options.keep) {
        if (is_or_lies_below(path, keep)) {
            return std::string(path);
        }
    }
    const size_t kernels = std::max(kernels_own(path), known_place(path).size());
    std::string out(path.substr(0, kernels));
    for (size_t at = kernels; at <= path.size();) {
        const size_t slash = std::min(path.find('/', at), path.size());
        if (slash > at) {
            out += impl_->component(path.substr(at, slash - at));
        }
        if (slash < path.size()) {
            out += '/';
        }
        at = slash + 1;
    }
    return out;
}

std::string NameTokens::words(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
        const std::string_view word = text.substr(at, end - at);
        if (!word.empty()) {
            out += word.find('/') == std::string_view::npos ? impl_->token(word) : path(word);
        }
        if (end < text.size()) {
            out += text[end];
        }
        at = end + 1;
    }
    return out;
}

std::string NameTokens::name(std::string_view text) { return text.empty() ? std::string() : impl_->token(text); }

uint64_t NameTokens::size() const { return impl_->known.size(); }

namespace {

class Anonymizer {
public:
    Anonymizer(const LogReader& log, const std::filesystem::path& output, const AnonymizeOptions& options)
        : log_(log), tables_(log.tables()), names_(options), writer_(output, header(), options.writer) {}

    AnonymizeResult run() {
        try {
            tables();
            AnonymizeResult result;
            for (TaskId task = 1; task < tables_.tasks.size(); ++task) {
                log_.for_each(task, [&](const Op& recorded, uint64_t) {
                    Op op = recorded;
                    op.text = text_of(op);
                    writer_.append(task, op);
                    ++result.ops;
                });
            }
            for (const Counter& counter : tables_.counters) {
                writer_.count(without_names(counter));
            }
            copy_page_cache(log_, writer_);
            copy_held_memory(log_, writer_);
            copy_contents(log_, writer_);
            result.names = names_.size();
            writer_.finish();
            return result;
        } catch (...) {
            writer_.discard();
            throw;
        }
    }

private:
    Header header() {
        Header out = log_.header();
        out.host = names_.name(out.host);
        out.command = names_.words(out.command);
        // A version of one's own has a name behind the numbers.
        const size_t version = out.kernel.find_first_of("0123456789");
        const size_t end = version == std::string::npos ? 0 : out.kernel.find_first_not_of("0123456789.", version);
        out.kernel = version == std::string::npos ? std::string() : out.kernel.substr(version, end - version);
        std::erase_if(out.extra, [](const auto& entry) { return !harmless(entry.first, entry.second); });
        if (const auto profile = read_fact(out, fact::capture_profile)) {
            write_fact(out, fact::capture_profile, without_identity(*profile));
        }
        return out;
    }

    // The meaning of a counter may tell a place of the source; the table has the rest of the sentence.
    static Counter without_names(const Counter& counter) {
        Counter out = counter;
        out.meaning = "counted by another version";
        for (const CounterInfo& row : all_counters()) {
            if (!row.family && counter.name == row.name) {
                out.meaning = row.meaning;
            } else if (row.family && counter.name.starts_with(row.name)) {
                const std::string_view call = std::string_view(counter.name).substr(row.name.size());
                out.name = std::string(row.name) + (is_identifier(call) ? std::string(call) : "other");
                out.meaning = row.meaning;
            }
        }
        if (const size_t hole = out.meaning.find("{}"); hole != std::string::npos) {
            out.meaning.replace(hole, 2, "(left out)");
        }
        return out;
    }
    static bool is_identifier(std::string_view text) {
        return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
    }

    // Hashes of the machine's id and name and of its boot say which logs are of one machine.
    static std::string without_identity(const std::string& profile) {
        auto json = nlohmann::ordered_json::parse(profile, nullptr, false);
        if (json.is_object()) {
            for (const char* const key : {"identity", "boot", "measured_unix_s"}) {
                json.erase(key);
            }
        }
        return json.is_discarded() ? std::string() : json.dump();
    }

    // Numbers, and known keys.
    static bool harmless(std::string_view key, std::string_view value) {
        if (is_public_fact(key)) {
            return true;
        }
        const auto json = nlohmann::json::parse(value, nullptr, false);
        return !json.is_discarded() && only_numbers(json);
    }
    static bool only_numbers(const nlohmann::json& json) {
        if (json.is_string()) {
            return false;
        }
        return !json.is_structured() || std::all_of(json.begin(), json.end(), only_numbers);
    }

    StringId keep(const std::string& text) { return text.empty() ? 0 : writer_.intern(text); }
    std::string_view old(StringId id) const { return tables_.strings[id]; }

    void tables() {
        for (size_t i = 1; i < tables_.processes.size(); ++i) {
            ProcessRow row = tables_.processes[i];
            row.command = keep(names_.words(old(row.command)));
            row.host = keep(names_.name(old(row.host)));
            writer_.add_process(row);
        }
        for (size_t i = 1; i < tables_.tasks.size(); ++i) {
            TaskRow row = tables_.tasks[i];
            row.name = keep(names_.name(old(row.name)));
            writer_.add_task(row);
        }
        for (size_t i = 1; i < tables_.files.size(); ++i) {
            FileRow row = tables_.files[i];
            row.path = keep(names_.path(old(row.path)));
            row.target = keep(names_.path(old(row.target)));
            writer_.add_file(row);
        }
        for (size_t i = 1; i < tables_.handles.size(); ++i) {
            writer_.add_handle(tables_.handles[i]);
        }
    }

    StringId text_of(const Op& op) {
        if (op.text == 0) {
            return 0;
        }
        const std::string_view text = old(op.text);
        if (op.kind == OpKind::symlink) {
            return keep(names_.path(text));
        }
        if (op.kind == OpKind::marker && is_any(text.substr(0, text.find('.')), kPublicMarks)) {
            return keep(std::string(text));
        }
        return keep(info(op.kind).is(Trait::mark) || info(op.kind).is(Trait::accelerator) ? names_.name(text)
                                                                                          : attribute(text));
    }

    // The namespace decides who may set an attribute, and on what.
    std::string attribute(std::string_view text) {
        if (is_any(text, kPublicAttributes)) {
            return std::string(text);
        }
        for (const std::string_view space : kNamespaces) {
            if (text.starts_with(space)) {
                return std::string(space) + names_.name(text.substr(space.size()));
            }
        }
        return names_.name(text);
    }

    const LogReader& log_;
    const Tables& tables_;
    NameTokens names_;
    LogWriter writer_;
};

}  // namespace

AnonymizeResult anonymize(const LogReader& log, const std::filesystem::path& output, const AnonymizeOptions& options) {
    return Anonymizer(log, output, options).run();
}

}  // namespace reprise
