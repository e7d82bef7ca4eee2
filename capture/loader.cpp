// SPDX-License-Identifier: MIT
#include "capture/loader.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>

#include "capture/bpf/shared.h"
#include "capture/bpf_object.h"
#include "capture/rules.h"
#include "formats/support/bytes.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

// What libbpf and the verifier said last, for the message of a failure.
std::string& bpf_words() {
    static std::string words;
    return words;
}

int keep_words(libbpf_print_level level, const char* format, va_list arguments) {
    if (level == LIBBPF_DEBUG && !getenv("REPRISE_BPF_DEBUG")) {
        return 0;
    }
    char line[4096];
    vsnprintf(line, sizeof line, format, arguments);
    if (getenv("REPRISE_BPF_DEBUG")) {
        fputs(line, stderr);
    }
    std::string& words = bpf_words();
    words += line;
    if (words.size() > 65536) {
        words.erase(0, words.size() - 32768);
    }
    return 0;
}

std::string first_failure() {
    const std::string& words = bpf_words();
    const size_t at = words.find("failed");
    if (at == std::string::npos) {
        return {};
    }
    const size_t begin = words.rfind('\n', at) == std::string::npos ? 0 : words.rfind('\n', at) + 1;
    return words.substr(begin, words.find('\n', at) - begin);
}

bool has_capability(unsigned number) {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &head, data) != 0) {
        return ::geteuid() == 0;
    }
    return (data[number / 32].effective >> (number % 32) & 1) != 0;
}

// Data symbols have addresses for BPF only where the kernel lists them (KALLSYMS_ALL).
bool kernel_symbol_known(std::string_view name) {
    std::ifstream in("/proc/kallsyms");
    std::string line;
    while (std::getline(in, line)) {
        if (line.size() < 20) {
            continue;
        }
        const std::string_view symbol = std::string_view(line).substr(19);
        if (symbol == name) {
            return true;
        }
    }
    return false;
}

struct Btf {
    btf* types = btf__load_vmlinux_btf();
    Btf() = default;
    ~Btf() { btf__free(types); }
    Btf(const Btf&) = delete;
    Btf& operator=(const Btf&) = delete;
    bool has_trace(std::string_view trace) const {
        const std::string name = "btf_trace_" + std::string(trace);
        return types && btf__find_by_name_kind(types, name.c_str(), BTF_KIND_TYPEDEF) > 0;
    }
    // Arguments of a tracepoint, the leading context not counted.
    int trace_arguments(std::string_view trace) const {
        const std::string name = "btf_trace_" + std::string(trace);
        const int id = types ? btf__find_by_name_kind(types, name.c_str(), BTF_KIND_TYPEDEF) : -1;
        if (id <= 0) {
            return 0;
        }
        const btf_type* type = btf__type_by_id(types, btf__type_by_id(types, id)->type);
        if (!type || !btf_is_ptr(type)) {
            return 0;
        }
        type = btf__type_by_id(types, type->type);
        return type && btf_is_func_proto(type) ? btf_vlen(type) - 1 : 0;
    }
    bool has_function(const char* name) const {
        return types && btf__find_by_name_kind(types, name, BTF_KIND_FUNC) > 0;
    }
};

}  // namespace

const std::vector<BpfHook>& bpf_hooks() {
    static const std::vector<BpfHook> hooks = {
        {"call_exit", "calls", "sys_exit", "nothing can be recorded"},
        {"call_enter", "calls", "sys_enter", "nothing can be recorded"},
        {"task_new", "calls", "task_newtask", "children and threads are not followed"},
        {"task_exec", "calls", "sched_process_exec", "programs that replace others are not named"},
        {"task_exit", "calls", "sched_process_exit", "calls that never return are lost"},
        {"task_free", "calls", "sched_process_free", "states of ended tasks are kept"},
        {"cgroup_enter", "cgroups", "cgroup_attach_task", "--cgroup misses what enters from outside"},
        {"cgroup_made", "cgroups", "cgroup_mkdir", "--cgroup misses groups made below"},
        {"seed_tasks", "seeds", "iter/task", "--pid cannot attach"},
        {"seed_files", "seeds", "iter/task_file", "descriptors that were open before are unknown"},
        {"seed_maps", "seeds", "iter/task_vma", "mappings that were there before are unknown"},
        {"task_memory", "memory", "iter/task", "what memory the job held itself is not known"},
        {"fault_map", "faults", "mm_filemap_map_pages", "pages of mapped files that are cached are not touched again"},
        {"fault_slow", "faults", "mm_filemap_fault", "pages of mapped files are not touched again"},
        {"fault_kernel", "faults", "page_fault_kernel", "pages touched by the kernel are not touched again"},
        {"fault_count", "faults", "rss_stat", "touches of tmpfs and of huge pages are not recorded"},
        {"fault_user", "faults", "page_fault_user", "page faults have no address"},
        {"uring_submit", "uring", "io_uring_submit_req", "requests of io_uring are not recorded"},
        {"uring_complete", "uring", "io_uring_complete", "completions of io_uring are not recorded"},
        {"irq_irq_handler_exit", "causes", "irq_handler_exit", "a waker may be an innocent one"},
        {"irq_softirq_exit", "causes", "softirq_exit", "a waker may be an innocent one"},
        {"irq_local_timer_exit", "causes", "local_timer_exit", "a waker may be an innocent one"},
        {"irq_call_function_exit", "causes", "call_function_exit", "a waker may be an innocent one"},
        {"irq_call_function_single_exit", "causes", "call_function_single_exit", "a waker may be an innocent one"},
        {"irq_irq_handler_entry", "causes", "irq_handler_entry", "a waker may be an innocent one"},
        {"irq_softirq_entry", "causes", "softirq_entry", "a waker may be an innocent one"},
        {"irq_local_timer_entry", "causes", "local_timer_entry", "a waker may be an innocent one"},
        {"irq_call_function_entry", "causes", "call_function_entry", "a waker may be an innocent one"},
        {"irq_call_function_single_entry", "causes", "call_function_single_entry", "a waker may be an innocent one"},
        {"task_waking", "causes", "sched_waking", "who woke a task is unknown"},
        {"task_waking_counted", "causes", "sched_waking", "who woke a task is unknown"},
        {"work_asked", "causes", "workqueue_queue_work", "who woke the reader of a terminal is unknown"},
        {"work_begins", "causes", "workqueue_execute_start", "who woke the reader of a terminal is unknown"},
        {"work_ends", "causes", "workqueue_execute_end", "who woke the reader of a terminal is unknown"},
        {"task_switch", "causes", "sched_switch", "compute and waiting cannot be told apart"},
        {"cache_add", "pagecache", "mm_filemap_add_to_page_cache", "read-ahead is not recorded"},
        {"cache_delete", "pagecache", "mm_filemap_delete_from_page_cache", "evictions are not recorded"},
        {"connection_over", "network", "tcp_destroy_sock", "what a connection did in its last second is not recorded"},
        {"block_issue", "block", "block_rq_issue", "block requests are not recorded"},
        {"block_complete", "block", "block_rq_complete", "block requests are not recorded"},
    };
    return hooks;
}

std::string bpf_refusal() {
#ifndef __x86_64__
    return "recording knows the system calls of x86-64 only";
#endif
    libbpf_set_print(keep_words);
    if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
        return "this kernel has no type information (/sys/kernel/btf/vmlinux; CONFIG_DEBUG_INFO_BTF)";
    }
    constexpr unsigned kBpf = 39, kPerfmon = 38, kAdmin = 21;
    const bool admin = has_capability(kAdmin);
    if (!admin && !(has_capability(kBpf) && has_capability(kPerfmon))) {
        return "recording needs root (or CAP_BPF and CAP_PERFMON)";
    }
    // Programs, links and maps have a descriptor each; without one, probes say that the kernel cannot do it.
    constexpr rlim_t kDescriptors = 96;
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kDescriptors) {
        return "the " + reason(EMFILE) + " is below the " + std::to_string(kDescriptors) + " that recording needs";
    }
    LIBBPF_OPTS(bpf_map_create_opts, plain);
    const UniqueFd map(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "reprise_probe", 0, 0, 65536, &plain));
    if (!map.valid()) {
        if (errno == EPERM) {
            return "bpf() is refused here although the rights are there: seccomp of a container, or kernel lockdown";
        }
        if (errno == ENOSYS) {
            return "this kernel, or seccomp of a container, has no bpf()";
        }
        return std::string("this kernel has no BPF ring buffer (5.8 or later is needed): ") + std::strerror(errno);
    }
    if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, nullptr) != 1) {
        return "this kernel has no BPF task storage (5.13 or later is needed)";
    }
    if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, nullptr) != 1) {
        return "this kernel has no BPF loops (5.17 or later is needed)";
    }
    const Btf types;
    for (const char* trace : {"sys_enter", "sys_exit", "task_newtask"}) {
        if (!types.has_trace(trace)) {
            return std::string("this kernel has no tracepoint ") + trace;
        }
    }
    return {};
}

struct BpfPrograms::Impl {
    ::bpf_object* object = nullptr;
    std::vector<bpf_link*> links;
    std::vector<std::string> absent;
    std::vector<std::string> attach_later;  // programs, in order
    uint64_t ring_bytes = 0;
    uint64_t* counters = nullptr;
    const uint64_t* seeded = nullptr;
    page_cost* page_costs = nullptr;
    const page_tables* tables = nullptr;

    void* shared = nullptr;  // globals of the loaded programs
    size_t shared_bytes = 0;

    ~Impl() {
        if (shared) {
            ::munmap(shared, shared_bytes);
        }
        if (tables) {
            ::munmap(const_cast<page_tables*>(tables), sizeof *tables);
        }
        for (bpf_link* link : links) {
            bpf_link__destroy(link);
        }
        bpf_object__close(object);
    }

    std::string raw_because;

    void load(const Options& options, bool raw);
    bpf_link* probe(const char* library, const char* name, uint32_t function, bool returns) const;

    [[noreturn]] static void fail(const std::string& what, int error) {
        std::string detail = std::strerror(error);
        if (const std::string said = first_failure(); !said.empty()) {
            detail += "; libbpf: " + escape_line(said);
        }
        throw machine_error(what + ": " + detail,
                            error == ENOMEM ? "try a smaller ring buffer (--ring 4M), or give the recorder's control "
                                              "group more memory"
                                            : capture_fallback());
    }

    bpf_map* map(const char* name) const {
        bpf_map* found = bpf_object__find_map_by_name(object, name);
        if (!found) {
            throw std::logic_error(std::string("no BPF map ") + name);
        }
        return found;
    }
    bpf_program* program(const char* name) const {
        bpf_program* found = bpf_object__find_program_by_name(object, name);
        if (!found) {
            throw std::logic_error(std::string("no BPF program ") + name);
        }
        return found;
    }

    // A global variable's place in its section, from the object's BTF.
    btf_var_secinfo place(const char* section, const char* name) const {
        const btf* types = bpf_object__btf(object);
        const int id = btf__find_by_name_kind(types, section, BTF_KIND_DATASEC);
        if (id > 0) {
            const btf_type* data = btf__type_by_id(types, id);
            const btf_var_secinfo* one = btf_var_secinfos(data);
            for (int i = 0; i < btf_vlen(data); ++i, ++one) {
                if (std::strcmp(btf__name_by_offset(types, btf__type_by_id(types, one->type)->name_off), name) == 0) {
                    return *one;
                }
            }
        }
        throw std::logic_error(std::string("no BPF variable ") + name);
    }
    bpf_map* section(const char* name) const {
        bpf_map* one = nullptr;
        bpf_object__for_each_map(one, object) {
            if (std::string_view(bpf_map__name(one)).ends_with(name)) {
                return one;
            }
        }
        throw std::logic_error(std::string("no BPF section ") + name);
    }
    // Before loading.
    void set(const char* name, const void* value, size_t size) const {
        const btf_var_secinfo at = place(".rodata", name);
        size_t bytes = 0;
        // const only in libbpf 1.1
        auto* memory = static_cast<uint8_t*>(const_cast<void*>(bpf_map__initial_value(section(".rodata"), &bytes)));
        if (!memory || at.size != size || at.offset + at.size > bytes) {
            throw std::logic_error(std::string("BPF variable differs: ") + name);
        }
        std::memcpy(memory + at.offset, value, size);
    }
    template <class T>
    void set(const char* name, T value) const {
        set(name, &value, sizeof value);
    }
    // After loading.
    template <class T>
    T* global(const char* name) {
        const btf_var_secinfo at = place(".bss", name);
        if (!shared) {
            bpf_map* bss = section(".bss");
            shared_bytes = bpf_map__value_size(bss);
            void* memory = ::mmap(nullptr, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(bss), 0);
            if (memory == MAP_FAILED) {
                fail("the counters of the BPF programs cannot be mapped", errno);
            }
            shared = memory;
        }
        return reinterpret_cast<T*>(static_cast<uint8_t*>(shared) + at.offset);
    }

    /// `use(bytes)` gets what it writes, in pieces.
    template <class Use>
    void run_iterator(const char* name, Use use) const {
        bpf_link* link = bpf_program__attach_iter(program(name), nullptr);
        if (!link) {
            fail(std::string("the iterator ") + name + " is refused", errno);
        }
        const UniqueFd results(bpf_iter_create(bpf_link__fd(link)));
        const int error = errno;
        std::array<uint8_t, 4096> piece;
        while (results.valid()) {
            const ssize_t n = ::read(results.get(), piece.data(), piece.size());
            if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
                break;
            }
            if (n > 0) {
                use(ByteView(piece.data(), static_cast<size_t>(n)));
            }
        }
        bpf_link__destroy(link);
        if (!results.valid()) {
            fail(std::string("the iterator ") + name + " cannot be read", error);
        }
    }
    void run_iterator(const char* name) const {
        run_iterator(name, [](ByteView) {});
    }
    /// The rows that it writes, all of one type.
    template <class Row>
    std::vector<Row> rows_of(const char* name) const {
        Bytes all;
        if (bpf_program__fd(program(name)) >= 0) {
            run_iterator(name, [&](ByteView piece) { all.insert(all.end(), piece.begin(), piece.end()); });
        }
        std::vector<Row> rows(all.size() / sizeof(Row));
        if (!rows.empty()) {
            std::memcpy(rows.data(), all.data(), rows.size() * sizeof(Row));
        }
        return rows;
    }

    void want_page_tables(bool wanted) const {
        bpf_map__set_autocreate(map("page_tables"), wanted);
        for (const char* name : {"page_roots", "read_page_tables"}) {
            bpf_program__set_autoload(program(name), wanted);
        }
    }
    void map_page_tables() {
        void* memory = ::mmap(nullptr, sizeof *tables, PROT_READ, MAP_SHARED, bpf_map__fd(map("page_tables")), 0);
        if (memory == MAP_FAILED) {
            fail("the copies of page tables cannot be mapped", errno);
        }
        tables = static_cast<const page_tables*>(memory);
        *global<uint32_t>("own_pid") = static_cast<uint32_t>(::getpid());
    }
};

// Opens, sets up and loads one of the two objects.
void BpfPrograms::Impl::load(const Options& options, bool raw) {
    Impl& impl = *this;
    bpf_words().clear();
    const auto bytes = bpf_object(raw);
    LIBBPF_OPTS(bpf_object_open_opts, open, .object_name = "reprise");
    impl.object = bpf_object__open_mem(bytes.data(), bytes.size(), &open);
    if (!impl.object) {
        Impl::fail("the BPF programs cannot be opened", errno);
    }

    // The ring wants a power of two of whole pages.
    uint64_t ring = 65536;
    while (ring < options.ring_bytes && ring < (uint64_t{1} << 30)) {
        ring *= 2;
    }
    impl.ring_bytes = ring;
    bpf_map__set_max_entries(impl.map("ring"), static_cast<uint32_t>(ring));
    bpf_map__set_max_entries(impl.map("scratches"), static_cast<uint32_t>(libbpf_num_possible_cpus()));

    const Btf types;
    const CallRules rules = call_rules();
    impl.set("rules", rules.data(), sizeof rules);
    impl.set<bool>("use_cast", !options.probe_reads && types.has_function("bpf_rdonly_cast"));
    impl.set<bool>("switch_state", types.trace_arguments("sched_switch") >= 4);
    impl.set<bool>("exit_group_dead", types.trace_arguments("sched_process_exit") >= 2);
    impl.set<bool>("want_pagecache", !options.without.contains("pagecache"));
    impl.set<bool>("want_network", !options.without.contains("network"));
    impl.set<bool>("want_cgroups", options.cgroups);
    impl.set<uint32_t>("page_bytes", static_cast<uint32_t>(::sysconf(_SC_PAGESIZE)));

    const bool causes = !options.without.contains("causes");
    const bool kernel_count = causes && kernel_symbol_known("__preempt_count");
    for (const BpfHook& hook : bpf_hooks()) {
        const std::string_view name = hook.program;
        bool wanted = !options.without.contains(hook.group);
        if (std::string_view(hook.group) == "cgroups") {
            wanted = options.cgroups;
        }
        if (name == "task_free" && !raw) {
            continue;
        }
        if (name == "task_waking") {
            wanted = causes && kernel_count;
        }
        if (name == "task_waking_counted" || name.starts_with("irq_")) {
            wanted = causes && !kernel_count;
        }
        const bool iterator = std::string_view(hook.trace).starts_with("iter/");
        const bool there = iterator ? types.has_function(("bpf_iter_" + std::string(hook.trace + 5)).c_str())
                                    : types.has_trace(hook.trace);
        if (wanted && !there) {
            impl.absent.emplace_back(hook.trace);
        }
        bpf_program__set_autoload(impl.program(hook.program), wanted && there);
        if (wanted && there && !iterator) {
            impl.attach_later.emplace_back(hook.program);
        }
    }
    for (const char* name : {"library_enter", "library_return"}) {
        bpf_program__set_autoload(impl.program(name), options.library_probes);
    }
    impl.want_page_tables(options.mapped_uses);
    if (const int error = bpf_object__load(impl.object); error != 0) {
        Impl::fail("the kernel refuses the BPF programs", -error);
    }
    if (options.mapped_uses) {
        impl.map_page_tables();
    }
    impl.counters = impl.global<uint64_t>("counters");
    impl.seeded = impl.global<uint64_t>("seeded");
    impl.page_costs = impl.global<page_cost>("page_costs");
}

BpfPrograms::BpfPrograms(const Options& options) : impl_(std::make_unique<Impl>()) {
    if (const std::string refusal = bpf_refusal(); !refusal.empty()) {
        throw machine_error(refusal, capture_fallback());
    }
    if (options.raw_tracepoints) {
        impl_->load(options, true);
        impl_->raw_because = "asked for";
        return;
    }
    // What is told where neither will do is why the better one was refused.
    std::exception_ptr refused;
    std::string because;
    try {
        impl_->load(options, false);
        return;
    } catch (const Error& refusal) {
        because = refusal.what();
        refused = std::current_exception();
    }
    impl_ = std::make_unique<Impl>();
    try {
        impl_->load(options, true);
    } catch (const Error&) {
        std::rethrow_exception(refused);
    }
    impl_->raw_because = because;
}

BpfPrograms::~BpfPrograms() = default;

void BpfPrograms::attach() {
    for (const std::string& name : impl_->attach_later) {
        bpf_link* link = bpf_program__attach(impl_->program(name.c_str()));
        if (!link) {
            Impl::fail("the hook " + name + " is refused", errno);
        }
        impl_->links.push_back(link);
    }
}

bpf_link* BpfPrograms::Impl::probe(const char* library, const char* name, uint32_t function, bool returns) const {
    bpf_program* one = program(returns ? "library_return" : "library_enter");
    if (bpf_program__fd(one) < 0) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    LIBBPF_OPTS(bpf_uprobe_opts, how, .bpf_cookie = function, .retprobe = returns, .func_name = name);
    return bpf_program__attach_uprobe_opts(one, -1, library, 0, &how);
}

int BpfPrograms::probe(const char* library, const char* name, uint32_t function) {
    for (const bool returns : {true, false}) {  // a call that is seen to begin shall be seen to end
        bpf_link* link = impl_->probe(library, name, function, returns);
        if (!link) {
            return errno >= __LIBBPF_ERRNO__START ? EINVAL : errno;  // no library at all
        }
        impl_->links.push_back(link);
    }
    return 0;
}

int64_t BpfPrograms::probed_call_ns() const {
    std::ifstream in("/proc/self/maps");
    std::string libc;
    for (std::string line; libc.empty() && std::getline(in, line);) {
        if (line.find("/libc.so") != std::string::npos || line.find("/libc-") != std::string::npos) {
            libc = line.substr(line.find('/'));
        }
    }
    if (libc.empty()) {
        return -1;
    }
    const auto least = [] {
        constexpr int kBatches = 5, kCalls = 100;
        int64_t least_ns = INT64_MAX;
        for (int batch = 0; batch < kBatches; ++batch) {
            const auto begin = std::chrono::steady_clock::now();
            for (int i = 0; i < kCalls; ++i) {
                static_cast<void>(::getppid());
            }
            least_ns = std::min<int64_t>(least_ns, (std::chrono::steady_clock::now() - begin).count() / kCalls);
        }
        return least_ns;
    };
    const int64_t without = least();
    bpf_link* back = impl_->probe(libc.c_str(), "getppid", CUDA_SYNC_SOME, true);
    bpf_link* in_front = back ? impl_->probe(libc.c_str(), "getppid", CUDA_SYNC_SOME, false) : nullptr;
    const int64_t with = in_front ? least() : -1;
    bpf_link__destroy(in_front);
    bpf_link__destroy(back);
    return with < 0 ? -1 : std::max<int64_t>(with - without, 0);
}

void BpfPrograms::set_page_costs(const PageCosts& costs) { std::memcpy(impl_->page_costs, costs.data(), sizeof costs); }

void BpfPrograms::forget_counts() { std::memset(impl_->counters, 0, COUNT_LIMIT * sizeof *impl_->counters); }

void BpfPrograms::detach() {
    for (bpf_link* link : impl_->links) {
        bpf_link__destroy(link);
    }
    impl_->links.clear();
}

uint64_t BpfPrograms::follow(const std::vector<pid_t>& pids) {
    const int fd = bpf_map__fd(impl_->map("seeds"));
    const auto seeded = [&] { return __atomic_load_n(impl_->seeded, __ATOMIC_RELAXED); };
    const uint64_t before = seeded();
    for (const pid_t pid : pids) {
        const uint8_t yes = 1;
        bpf_map_update_elem(fd, &pid, &yes, BPF_ANY);
    }
    // Once more for what was made during the first.
    uint64_t last = 0;
    do {
        last = seeded();
        impl_->run_iterator("seed_tasks");
    } while (seeded() != last);
    return seeded() - before;
}

void BpfPrograms::watch_cgroups(const std::vector<CgroupId>& groups) {
    const int fd = bpf_map__fd(impl_->map("cgroups"));
    for (const CgroupId& group : groups) {
        const cgroup_key key{group.id, group.hierarchy, 0};
        const uint8_t yes = 1;
        bpf_map_update_elem(fd, &key, &yes, BPF_ANY);
    }
}

void BpfPrograms::seed_descriptors() { impl_->run_iterator("seed_files"); }
void BpfPrograms::seed_mappings() { impl_->run_iterator("seed_maps"); }

std::vector<process_memory> BpfPrograms::memory() { return impl_->rows_of<process_memory>("task_memory"); }

std::vector<page_root> BpfPrograms::page_roots() { return impl_->rows_of<page_root>("page_roots"); }

const page_tables* BpfPrograms::read_page_tables(page_walk walk) {
    LIBBPF_OPTS(bpf_test_run_opts, how, .ctx_in = &walk, .ctx_size_in = sizeof walk);
    return bpf_prog_test_run_opts(bpf_program__fd(impl_->program("read_page_tables")), &how) == 0 ? impl_->tables
                                                                                                  : nullptr;
}

int BpfPrograms::ring_fd() const { return bpf_map__fd(impl_->map("ring")); }
uint64_t BpfPrograms::ring_bytes() const { return impl_->ring_bytes; }
uint64_t BpfPrograms::counter(int which) const { return __atomic_load_n(impl_->counters + which, __ATOMIC_RELAXED); }
const std::vector<std::string>& BpfPrograms::absent() const { return impl_->absent; }
const std::string& BpfPrograms::raw_because() const { return impl_->raw_because; }

uint64_t BpfPrograms::recursion_misses() const {
    uint64_t misses = 0;
    for (const std::string& name : impl_->attach_later) {
        bpf_prog_info info{};
        __u32 size = sizeof info;
        const int fd = bpf_program__fd(impl_->program(name.c_str()));
        if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
            misses += info.recursion_misses;
        }
    }
    return misses;
}

}  // namespace reprise
