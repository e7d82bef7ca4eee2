// SPDX-License-Identifier: MIT
#include "transform/scale.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/contents.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/held_memory.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/run_times.h"
#include "formats/support/error.h"
#include "formats/support/quantity.h"
#include "transform/scale_edges.h"
#include "transform/scale_listings.h"
#include "transform/scale_objects.h"
#include "transform/scale_piece.h"
#include "transform/scale_places.h"
#include "transform/scale_reads.h"
#include "transform/scale_set.h"
#include "transform/scale_times.h"

namespace reprise {
namespace {

class LogScaler {
public:
    LogScaler(const LogReader& log, const std::filesystem::path& output, const ScaleOptions& options,
              const WriterOptions& writer)
        : log_(log),
          tables_(log.tables()),
          options_(options),
          recording_(log, options.as),
          score_(make_score(recording_, options.factor, options.epochs)),
          set_(recording_, score_, options.factor, options.seed),
          places_(recording_, score_, options.factor, options.seed),
          listings_(tables_, set_),
          edges_(recording_),
          writer_(output, header(), writer),
          pieces_(log),
          reads_(recording_, writer_.tables(), edges_, places_, made_, options.factor),
          times_(recording_, writer_.tables()) {}

    ScaleResult run() {
        try {
            write();
        } catch (...) {
            writer_.discard();
            throw;
        }
        return std::move(result_);
    }

private:
    void write() {
        add_tables();
        for (size_t passage = 0; passage < score_.passages.size(); ++passage) {
            enter(passage);
            play();
        }
        keep_page_cache();
        result_.epochs = score_.played;
        result_.asked = score_.wanted;
        result_.edges_dropped = edges_.dropped();
        for (const Counter& counter : tables_.counters) {
            writer_.count(counter);
        }
        writer_.count(Count::scaled_files_added, result_.files_added);
        writer_.count(Count::scaled_edges_dropped, result_.edges_dropped);
        writer_.count(Count::scaled_ops_dropped, result_.ops_dropped);
        result_.notes = scaling_notes(recording_);
        const auto [not_reached, file] = places_.not_reached();
        constexpr double kLittle = 0.02;
        const auto missed =
            std::max(missed_permille(score_), static_cast<uint32_t>(not_reached > kLittle ? not_reached * 1000 : 0));
        if (missed != 0) {
            write_fact(writer_.header(), fact::scaled_missed, missed);
        }
        if (not_reached > kLittle) {
            result_.notes.push_back(format_share(not_reached) + " of the longer files is not read, most of " +
                                    std::string(tables_.path(file)));
        }
        add_missed_epochs(score_, result_.notes);
        writer_.finish();
    }

    Header header() const {
        Header out = log_.header();
        out.extra.erase(std::string(fact::context.key));  // of times that are no longer the log's
        write_fact(out, fact::scale, options_.to_string());
        return out;
    }

    void add_tables() {
        std::vector<StringId>& strings = strings_;
        strings.resize(tables_.strings.size());
        for (StringId id = 1; id < strings.size(); ++id) {
            strings[id] = writer_.intern(tables_.strings[id]);
        }
        std::unordered_map<std::string_view, uint32_t> names;
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            ++names[tables_.path(id)];
        }
        reused_.resize(tables_.files.size());
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            reused_[id] = names[tables_.path(id)] > 1;
            FileRow row = tables_.files[id];
            if (row.origin == Origin::created) {
                made_paths_.emplace(tables_.path(id), id);
            }
            row.path = strings[row.path];
            row.target = strings[row.target];
            grow(id, row);
            writer_.add_file(row);
        }
        for (const LargerSet::Added& one : set_.added()) {
            FileRow row = tables_.files[one.like];
            row.path = writer_.intern(one.path);
            row.target = 0;
            row.inode = 0;
            row.generation = 0;
            result_.bytes_after += row.size;
            ++result_.files_added;
            writer_.add_file(row);
        }
        add_handles();
        for (ProcessId id = 1; id < tables_.processes.size(); ++id) {
            ProcessRow row = tables_.processes[id];
            row.command = strings[row.command];
            row.host = strings[row.host];
            last_pid_ = std::max(last_pid_, row.pid);
            writer_.add_process(row);
        }
        for (TaskId id = 1; id < tables_.tasks.size(); ++id) {
            TaskRow row = tables_.tasks[id];
            row.name = strings[row.name];
            last_pid_ = std::max(last_pid_, row.tid);
            first_task_.try_emplace(row.process, id);
            writer_.add_task(row);
        }
        edges_.tasks(writer_.tables().tasks.size());
        next_map_ = recording_.map_limit();
        next_request_ = recording_.request_limit();
    }

    void grow(FileId id, FileRow& row) {
        if (set_.sample(id)) {
            result_.bytes_before += row.size;
            result_.bytes_after += set_.gone(id) ? 0 : row.size;
            if (set_.gone(id)) {
                row.origin = Origin::absent;
                ++result_.files_removed;
            }
        } else if (places_.holds(id) || recording_.class_of(id) == SampleClass::index) {
            result_.bytes_before += row.size;
            row.size = static_cast<uint64_t>(reads_.new_size(id));
            result_.bytes_after += row.size;
        }
    }

    void add_handles() {
        std::vector<size_t> first(score_.cuts.size());
        for (size_t passage = score_.passages.size(); passage-- > 0;) {
            first[score_.passages[passage].piece] = passage;
        }
        for (HandleId id = 1; id < tables_.handles.size(); ++id) {
            HandleRow row = tables_.handles[id];
            const uint32_t unit = recording_.unit_of_handle(id);
            if (unit != ScaleRecording::kNoUnit && set_.sample(row.file)) {
                const SampleUnit& of = recording_.units()[unit];
                const FileId file = set_.file_of(first[score_.piece_of(of.task, of.first)], unit);
                row.file = file != 0 ? file : row.file;
            }
            writer_.add_handle(row);
        }
    }

    void enter(size_t number) {
        const Passage& now = score_.passages[number];
        if (number > 0) {
            const Passage& before = score_.passages[number - 1];
            const size_t from = before.piece + 1;
            stand_ = carry(recording_, score_.cuts[from], score_.cuts[now.piece], stand_);
            goes_on_ = from == now.piece;
            if (from != now.piece) {
                made_.moved += score_.times[from] - score_.times[now.piece];
            }
        }
        passage_ = number;
        now_ = &now;
        from_ = &score_.cuts[now.piece];
        to_ = &score_.cuts[now.piece + 1];
        hold(number);
        reads_.enter(number, now.epochs);
    }

    /// What the job held in that time. Of all processes together, as those that a piece makes have others' places.
    void hold(size_t number) {
        const size_t piece = score_.passages[number].piece;
        const bool last = number + 1 == score_.passages.size();
        const int64_t from = number == 0 ? 0 : score_.times[piece];
        const auto put = [&](int64_t time, uint64_t bytes) { held_.push_back({time + made_.moved, bytes, 0}); };
        if (!job_held_.empty()) {
            put(from, held_at(job_held_, from));
        }
        for (const HeldTotal& point : job_held_) {
            if (point.time_ns > from && (last || point.time_ns < score_.times[piece + 1])) {
                put(point.time_ns, point.bytes);
            }
        }
    }

    template <class Make>
    uint32_t stand_in(Stand::Kind kind, uint32_t id, const ScaleObject* object, Make&& make) {
        if (id == 0) {
            return 0;
        }
        const auto known = stand_.of[kind].find(id);
        if (known != stand_.of[kind].end()) {
            return known->second;
        }
        if (now_->again == 0 || object == nullptr || !made_between(*object, *from_, *to_)) {
            return id;
        }
        const uint32_t made = make();
        stand_.of[kind].emplace(id, made);
        return made;
    }

    static const ScaleObject* find(const std::unordered_map<uint32_t, ScaleObject>& objects, uint32_t id) {
        const auto found = objects.find(id);
        return found == objects.end() ? nullptr : &found->second;
    }

    /// A file that the job made: another one each time, under a name of its own unless the job uses the name again.
    FileId made_file(FileId id) {
        return stand_in(Stand::file, id, &recording_.files()[id], [&] {
            FileRow row = tables_.files[id];
            row.target = strings_[row.target];
            row.generation += ++made_again_;
            row.path = reused_[id] ? strings_[row.path] : writer_.intern(another_name(tables_.path(id)));
            const FileId made = writer_.add_file(row);
            times_.file_like(made, id);
            return made;
        });
    }

    /// With the count of repetitions in the topmost name that the piece makes.
    std::string another_name(std::string_view path) const {
        std::string out(path);
        const std::string mark = ".again" + std::to_string(passage_);
        for (size_t slash = out.find('/', 1);; slash = out.find('/', slash + 1)) {
            const size_t end = slash == out.npos ? out.size() : slash;
            const auto made = made_paths_.find(path.substr(0, end));
            if (end == out.size() ||
                (made != made_paths_.end() && made_between(recording_.files()[made->second], *from_, *to_))) {
                return out.insert(end, mark);
            }
        }
    }

    /// The file that stands for one that an op names; kNone: none.
    FileId file_for(TaskId task, uint32_t number, FileId id) {
        if (id == 0 || id >= tables_.files.size()) {
            return id;
        }
        if (set_.sample(id)) {
            const uint32_t unit = edges_.unit_at(task, number, id);
            const FileId file = unit != ScaleRecording::kNoUnit ? set_.file_of(passage_, unit) : set_.gone(id) ? 0 : id;
            return file == 0 ? Stand::kNone : file;
        }
        return tables_.files[id].origin == Origin::created ? made_file(id) : id;
    }

    HandleId handle_for(const PieceOp& of, HandleId id) {
        if (id == 0 || id >= tables_.handles.size()) {
            return 0;
        }
        const HandleRow& recorded = tables_.handles[id];
        if (recorded.inherited &&
            (recorded.file >= tables_.files.size() || tables_.files[recorded.file].origin != Origin::created)) {
            return stand_.get(Stand::handle, id);
        }
        const uint32_t held = recording_.held_by(id, tables_.tasks[of.task].process);
        if (held == 0) {
            return instance_for(of, id);
        }
        const auto known = stand_.of[Stand::held].find(held);
        if (known != stand_.of[Stand::held].end()) {
            return known->second;
        }
        // This process has it from now on: what stands for it in the one that made it, or sent it.
        const bool here = made_between(recording_.held()[held], *from_, *to_);
        const HandleId now = here ? instance_for(of, id) : id;
        if (now != id) {
            stand_.of[Stand::held].emplace(held, now);
        }
        return now;
    }

    HandleId instance_for(const PieceOp& of, HandleId id) {
        const HandleRow& recorded = tables_.handles[id];
        return stand_in(Stand::handle, id, &recording_.handles()[id], [&] {
            HandleRow row = recorded;
            uint32_t unit = recording_.unit_of_handle(id);
            const FileId file = set_.sample(row.file) && unit != ScaleRecording::kNoUnit
                                    ? set_.file_of(passage_, unit)
                                    : file_for(of.task, of.number, row.file);
            row.file = file == Stand::kNone || file == 0 ? row.file : file;
            row.process = process_for(row.process);
            const HandleId made = writer_.add_handle(row);
            times_.handle_like(made, id);
            return made;
        });
    }

    ProcessId process_for(ProcessId id) {
        const auto first = first_task_.find(id);
        const TaskId now = first == first_task_.end() ? Stand::kNone : task_for(first->second);
        return now == Stand::kNone ? id : writer_.tables().tasks[now].process;
    }

    TaskId task_for(TaskId id) {
        return stand_in(Stand::task, id, &recording_.task_objects()[id], [&] {
            TaskRow row = tables_.tasks[id];
            row.name = strings_[row.name];
            row.tid = ++last_pid_;
            const ProcessId recorded = row.process;
            const TaskId first = first_task_.at(recorded);
            if (first == id) {  // it began the process
                ProcessRow process = tables_.processes[recorded];
                process.command = strings_[process.command];
                process.host = strings_[process.host];
                process.parent = process_for(process.parent);
                process.pid = row.tid;
                row.process = writer_.add_process(process);
            } else {
                const TaskId sibling = task_for(first);
                row.process = sibling == Stand::kNone ? recorded : writer_.tables().tasks[sibling].process;
            }
            const TaskId made = writer_.add_task(row);
            edges_.tasks(made + 1);
            return made;
        });
    }

    /// All tasks' ops of the piece in the order of time, as they are this time.
    void play() {
        std::vector<PieceOp>& ops = pieces_.load(*from_, *to_);
        made_.start(writer_.tables().tasks.size());
        listings_.look_at(ops);
        for (size_t i = 0; i < ops.size(); ++i) {
            PieceOp& op = ops[i];
            const TaskId task = task_for(op.task);
            if (task == Stand::kNone) {
                ++result_.ops_dropped;
                continue;
            }
            if (!change(op, task)) {
                ++result_.ops_dropped;
                edges_.left_out(op, made_.of(task).size());
                continue;
            }
            listings_.change(op, [&](const PieceOp& more) { made_.insert(more, task); });
            edges_.number(op, made_.of(task).size());
            made_.add(op, task);
            reads_.index(op, task);
            look_at_others(ops, i, task);
        }
        finish_passage();
    }

    void finish_passage() {
        for (TaskId task = 1; task < made_.tasks(); ++task) {
            edges_.base(task, writer_.op_count(task));
        }
        for (TaskId task = 1; task < made_.tasks(); ++task) {
            for (PieceOp& op : made_.of(task)) {
                find_sources(op);
            }
        }
        times_.arrange(made_, edges_, goes_on_);
        for (TaskId task = 1; task < made_.tasks(); ++task) {
            for (PieceOp& op : made_.of(task)) {
                op.op.edges = op.edges;
                op.op.list = op.list;
                op.op.text = op.op.text < strings_.size() ? strings_[op.op.text] : 0;
                writer_.append(task, op.op);
                ++result_.ops;
            }
        }
        for (TaskId task = 1; task < made_.tasks(); ++task) {
            edges_.emitted(task, made_.of(task));
        }
        edges_.next_passage();
    }

    /// Its edges as they are this time.
    void find_sources(PieceOp& of) {
        const int64_t until = waits_for_edges(of.op.kind) ? end_of(of.recorded, of.op.duration) : of.recorded;
        std::vector<Edge> edges;
        for (const Edge& edge : of.edges) {
            if (const auto source = edges_.source(edge, until, *from_, *to_, [&](TaskId id) { return task_for(id); })) {
                edges.push_back(source->edge);
                of.after = std::max(of.after, source->after);
            }
        }
        of.edges = std::move(edges);
    }

    /// False where nothing of it is left.
    bool change(PieceOp& of, TaskId task) {
        Op& op = of.op;
        const HandleId recorded = op.handle;
        const FileId opened = recorded < tables_.handles.size() ? tables_.handles[recorded].file : 0;
        op.file = file_for(of.task, of.number, op.file);
        op.file2 = file_for(of.task, of.number, op.file2);
        op.handle = handle_for(of, op.handle);
        op.handle2 = handle_for(of, op.handle2);
        const uint32_t map = op.map;
        op.map = stand_in(Stand::map, map, find(recording_.maps(), map), [&] {
            times_.map_like(next_map_, map);
            return next_map_++;
        });
        op.request = stand_in(Stand::request, op.request, find(recording_.requests(), op.request),
                              [&] { return next_request_++; });
        op.peer = op.peer != 0 && op.peer < tables_.tasks.size() ? task_for(op.peer) : 0;
        for (const uint32_t id : {op.file, op.file2, op.handle, op.handle2, op.map, op.request, op.peer}) {
            if (id == Stand::kNone) {
                if (op.kind == OpKind::mmap) {
                    stand_.of[Stand::map][map] = Stand::kNone;  // nor is what is done with it
                }
                return false;
            }
        }
        if (op.kind == OpKind::marker && tables_.strings[op.text] == "epoch") {
            op.arg += static_cast<int32_t>(now_->epochs);
        }
        if (places_.holds(opened) || (map != 0 && places_.holds(recording_.file_of_map(map)))) {
            return reads_.record(of, task, map, map != 0 ? recording_.file_of_map(map) : opened);
        }
        if (set_.sample(opened) && op.handle != 0) {
            reads_.sample(op, opened);
        }
        return true;
    }

    /// After a look at a file before or between epochs: the same at those that the set has more.
    void look_at_others(const std::vector<PieceOp>& ops, size_t at, TaskId task) {
        const PieceOp& last = ops[at];
        const uint32_t number = edges_.unit_ending(last.task, last.number);
        if (number == ScaleRecording::kNoUnit || !set_.walks(number)) {
            return;
        }
        const SampleUnit& unit = recording_.units()[number];
        const auto& members = set_.members(unit.file);
        if (members.size() < 2 || unit.first < (*from_)[unit.task]) {
            return;
        }
        std::vector<PieceOp> look;
        for (const PieceOp& op : pieces_.recorded(unit.task, unit.first, unit.last)) {
            if (info(op.op.kind).is(Trait::io) || op.op.kind == OpKind::compute) {
                look.push_back(op);
            }
        }
        for (size_t member = 1; member < members.size(); ++member) {
            std::unordered_map<HandleId, HandleId> handles;
            for (PieceOp op : look) {
                op.edges.clear();
                op.op.begin = last.op.end();
                op.op.file = op.op.file == unit.file ? members[member] : op.op.file;
                if (op.op.handle != 0) {
                    HandleId& handle = handles[op.op.handle];
                    if (handle == 0) {
                        HandleRow row = tables_.handles[op.op.handle];
                        row.file = members[member];
                        handle = writer_.add_handle(row);
                    }
                    op.op.handle = handle;
                }
                if (op.op.map == 0 && op.op.handle2 == 0) {
                    made_.insert(op, task);
                }
            }
        }
    }

    /// What is known of a file holds for those that were made like it.
    template <class ByFile>
    ByFile with_added(ByFile known) const {
        for (FileId i = 0; i < set_.added().size(); ++i) {
            if (const auto like = known.find(set_.added()[i].like); like != known.end()) {
                const auto copy = like->second;
                known[static_cast<FileId>(tables_.files.size() + i)] = copy;
            }
        }
        return known;
    }

    /// Of a file that is longer now, each part is as the recorded one was.
    FetchedPages longer(FetchedPages known) const {
        for (auto& [file, pages] : known) {
            const uint64_t before = tables_.files[file].size, now = writer_.tables().files[file].size;
            if (now == before || before < RangeSet::kPage) {
                continue;
            }
            RangeSet all = pages;
            for (uint64_t by = before / RangeSet::kPage * RangeSet::kPage, at = by; at < now; at += by) {
                for (const auto& [from, to] : pages.ranges()) {
                    all.add(from + at, to + at);
                }
            }
            all.clip(now);
            pages = std::move(all);
        }
        return known;
    }

    void keep_page_cache() {
        if (auto fetched = fetched_pages(log_)) {
            writer_.keep(encode_fetched(with_added(longer(std::move(*fetched)))));
        }
        if (auto again = refetched_pages(log_)) {
            writer_.keep(encode_refetched(with_added(std::move(*again))));
        }
        if (auto cached = cached_pages(log_)) {
            writer_.keep(encode_cached(with_added(std::move(*cached))));
        }
        if (!held_.empty()) {
            writer_.keep(encode_held_memory({{ProcessId{1}, held_}}));
        }
        copy_contents(log_, writer_);
        if (const Holes holes = recorded_holes(log_); !holes.empty()) {
            writer_.keep(encode_holes(holes));
        }
        if (const Holes before = holes_before(log_); !before.empty()) {
            writer_.keep(encode_holes_before(before));
        }
    }

    const LogReader& log_;
    const Tables& tables_;
    const ScaleOptions& options_;
    const ScaleRecording recording_;
    const Score score_;
    const LargerSet set_;
    RecordPlaces places_;
    ScaledListings listings_;
    ScaledEdges edges_;
    LogWriter writer_;
    PieceReader pieces_;
    MadeOps made_;
    ScaledReads reads_;
    ScaledTimes times_;
    ScaleResult result_;

    std::vector<StringId> strings_;
    std::vector<uint8_t> reused_;  // by recorded file: its path names another one, too
    std::unordered_map<std::string_view, FileId> made_paths_;
    std::unordered_map<ProcessId, TaskId> first_task_;
    int32_t last_pid_ = 0;
    const std::vector<HeldTotal> job_held_ = total_held(held_memory(log_).value_or(HeldMemories()));
    std::vector<HeldMemory> held_;
    uint32_t next_map_ = 1, next_request_ = 1, made_again_ = 0;

    // The passage at hand.
    size_t passage_ = 0;
    const Passage* now_ = nullptr;
    const Cut *from_ = nullptr, *to_ = nullptr;
    bool goes_on_ = false;  // after the passage before as in the recording
    Stand stand_;
};

}  // namespace

ScaleResult scale_log(const LogReader& log, const std::filesystem::path& output, const ScaleOptions& options,
                      const WriterOptions& writer) {
    refuse_without_times(log);
    return LogScaler(log, output, options, writer).run();
}

}  // namespace reprise
