// SPDX-License-Identifier: MIT
// A training job: ranks, each with a loader of threads that keep some batches ahead, accelerators and checkpoints.
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "generate/checkpoint_file.h"
#include "generate/sample_order.h"
#include "generate/sample_reader.h"
#include "generate/section_writer.h"
#include "generate/training_notes.h"
#include "generate/turns.h"

namespace reprise {
namespace {

// What is drawn apart from each other.
constexpr uint64_t kOrder = 1, kDecode = 2, kCompute = 3, kOverhead = 4;

class Training {
public:
    Training(LogPlace& place, const JobSection& section, const TrainingJob& job)
        : place_(place),
          section_(section),
          job_(job),
          data_(section, job),
          epoch_name_(place.log.intern("epoch")),
          step_name_(place.log.intern("step")) {}

    void write(const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends) {
        data_.add_files(place_.log);
        start(after);
        const uint64_t steps = job_.all_steps();
        uint64_t step = 0;
        for (uint64_t epoch = 0; epoch < job_.epochs && step < steps; ++epoch) {
            begin_epoch(epoch);
            const uint64_t count = std::min(job_.steps_per_epoch(), steps - step);
            for (uint64_t batch = 0; batch < count; ++batch, ++step) {
                one_step(step, batch);
                if (step % 256 == 0) {
                    place_.progress(static_cast<double>(step) / static_cast<double>(steps));
                }
            }
            end_epoch(epoch, count == job_.steps_per_epoch() ? step : 0);
        }
        finish(ends, steps);
    }

private:
    struct Worker {
        TaskWriter task;
        SampleReader reader;
        uint64_t next = 0;            // of a stream: place in the epoch's order of the next sample
        uint64_t begin = 0, end = 0;  // its part of the order
    };
    struct Rank {
        Rank(std::unique_ptr<Descriptors> own_descriptors, const TaskWriter& task)
            : descriptors(std::move(own_descriptors)), main(task) {}
        std::unique_ptr<Descriptors> descriptors;
        TaskWriter main;
        std::vector<Worker> workers;        // none: main reads
        std::unique_ptr<SampleReader> own;  // then
        std::deque<TaskMoment> taken;       // when main took the latest batches of this epoch
        TaskMoment epoch_begins;
        std::unique_ptr<TaskWriter> saver;  // of checkpoints, where they are asynchronous
        std::unique_ptr<Turns> turns;       // of interleaved streams
    };

    void start(const std::vector<TaskMoment>& after) {
        int64_t begin = 0;
        for (const TaskMoment& each : after) {
            begin = std::max(begin, each.time);
        }
        begin_ = begin;
        for (uint64_t number = 0; number < job_.ranks; ++number) {
            const std::string name = job_.ranks == 1 ? section_.name : section_.name + "-" + std::to_string(number);
            const ProcessId process = place_.add_process(0, name);
            auto descriptors = std::make_unique<Descriptors>();
            TaskWriter main(place_.log, place_.add_task(process, name), *descriptors, begin);
            main.wait_for(after);
            Rank rank(std::move(descriptors), main);
            rank.workers.reserve(job_.workers);
            for (uint64_t worker = 0; worker < job_.workers; ++worker) {
                const TaskId task = place_.add_task(process, "loader-" + std::to_string(worker));
                rank.main.spawn(task, true);
                rank.workers.push_back({TaskWriter(place_.log, task, *rank.descriptors, rank.main.now()),
                                        SampleReader(job_, data_, place_.maps)});
            }
            if (job_.workers == 0) {
                rank.own = std::make_unique<SampleReader>(job_, data_, place_.maps);
            }
            if (job_.interleaves_streams()) {
                const TaskId task = place_.add_task(process, "batches");
                rank.main.spawn(task, true);
                rank.turns = std::make_unique<Turns>(TaskWriter(place_.log, task, *rank.descriptors, rank.main.now()),
                                                     job_.workers);
            }
            const bool saves = job_.checkpoint_size != 0 && job_.checkpoint_mode == TrainingJob::Checkpoint::async;
            if (saves && number == 0) {
                const TaskId task = place_.add_task(process, "checkpoint");
                rank.main.spawn(task, true);
                rank.saver = std::make_unique<TaskWriter>(place_.log, task, *rank.descriptors, rank.main.now());
            }
            ranks_.push_back(std::move(rank));
        }
    }

    void begin_epoch(uint64_t epoch) {
        const uint64_t key = mixed_bits(mixed_bits(section_.seed, kOrder), epoch);
        file_order_.emplace(std::max<uint64_t>(job_.samples / job_.samples_per_file, 1), key);
        order_.emplace(job_.samples, job_.shuffled, job_.shuffle_buffer, key);
        for (Rank& rank : ranks_) {
            rank.main.mark(epoch_name_, epoch + 1, MarkerPhase::begin);
            rank.epoch_begins = rank.main.last();
            rank.taken.clear();
            if (rank.turns) {
                rank.turns->begin_epoch();
            }
        }
        if (is_stream(job_.format)) {
            deal_out();
        }
    }

    /// Each worker reads a part of the epoch's order from front to back, so that a file has few readers.
    void deal_out() {
        const uint64_t steps = job_.steps_per_epoch(), workers = std::max<uint64_t>(job_.workers, 1);
        uint64_t next = 0;
        own_next_.assign(ranks_.size(), 0);
        for (uint64_t rank = 0; rank < ranks_.size(); ++rank) {
            for (uint64_t worker = 0; worker < workers; ++worker) {
                (job_.workers == 0 ? own_next_[rank] : ranks_[rank].workers[worker].next) = next;
                const uint64_t all = job_.interleave ? steps * job_.batch * job_.gpus_per_rank() : steps;
                const uint64_t mine = all / workers + (worker < all % workers ? 1 : 0);
                const uint64_t begin = next;
                next += job_.interleave ? mine : mine * job_.batch * job_.gpus_per_rank();
                if (job_.workers != 0) {
                    ranks_[rank].workers[worker].begin = begin;
                    ranks_[rank].workers[worker].end = next;
                }
            }
        }
    }

    /// Sample number `at` of a stream's order: files in theirs, samples of a file as they lie.
    uint64_t streamed(uint64_t at) const {
        if (!job_.shuffled) {
            return at;
        }
        // The last file may be shorter: it stays the last.
        const uint64_t whole = job_.samples / job_.samples_per_file;
        const uint64_t file = at / job_.samples_per_file;
        if (file >= whole || whole < 2) {
            return at;
        }
        return (*file_order_)(file)*job_.samples_per_file + at % job_.samples_per_file;
    }

    void load(TaskWriter& task, SampleReader& reader, uint64_t& next, uint64_t samples) {
        for (uint64_t i = 0; i < samples; ++i) {
            if (is_stream(job_.format)) {
                reader.read_on(task, streamed(next++));
            } else {
                reader.read(task, order_->next());
            }
            task.compute(job_.decode.draw(mixed_bits(section_.seed, kDecode), decoded_++, &decodes_below_));
        }
    }

    /// tf.data has twice as many files open as it takes samples from, and has read the first piece of each.
    void look_ahead(Worker& worker, uint64_t read) {
        constexpr uint64_t kFilesAhead = 2;
        const uint64_t each = job_.samples_per_file;
        if (read != worker.begin && read % each != 0) {
            return;
        }
        for (uint64_t k = 1; k <= kFilesAhead && (read / each + k) * each < worker.end; ++k) {
            worker.reader.look_ahead(worker.task, data_.file_of(streamed((read / each + k) * each)));
        }
    }

    /// A batch whose samples come from all workers in turn.
    void gather(Rank& rank, uint64_t batch) {
        const uint64_t samples = job_.batch * job_.gpus_per_rank(), begin = batch * samples;
        for (uint64_t i = 0; i < samples; ++i) {
            Worker& worker = rank.workers[(begin + i) % job_.workers];
            if (batch >= job_.ahead()) {
                if (i < job_.workers) {
                    worker.task.wait_for(rank.taken.front());
                }
            } else if (begin + i < job_.workers) {
                worker.task.wait_for(rank.epoch_begins);
            }
            const uint64_t read = worker.next;
            if (rank.turns && worker.reader.will_read(streamed(read))) {
                worker.task.wait_for(rank.turns->place_for(begin + i));
            }
            load(worker.task, worker.reader, worker.next, 1);
            if (rank.turns) {
                rank.turns->loaded(begin + i, worker.task.last());
                look_ahead(worker, read);
            }
        }
        if (batch >= job_.ahead()) {
            rank.taken.pop_front();
        }
        std::vector<TaskMoment> all;
        for (uint64_t i = 0; i < std::min(samples, job_.workers); ++i) {
            all.push_back(rank.workers[(begin + samples - 1 - i) % job_.workers].task.last());
        }
        rank.main.wait_for(all);
        rank.taken.push_back(rank.main.last());
    }

    /// The batch that a rank needs next, by whoever loads it.
    void fetch(uint64_t number, uint64_t batch) {
        if (job_.format == SampleFormat::none) {
            return;
        }
        Rank& rank = ranks_[number];
        if (job_.workers == 0) {
            uint64_t none = 0;
            const uint64_t samples = job_.batch * job_.gpus_per_rank();
            return load(rank.main, *rank.own, own_next_.empty() ? none : own_next_[number], samples);
        }
        if (job_.interleave) {
            return gather(rank, batch);
        }
        Worker& worker = rank.workers[batch % job_.workers];
        if (batch >= job_.ahead()) {
            worker.task.wait_for(rank.taken.front());  // its place in the queue was free then
            rank.taken.pop_front();
        } else if (batch < job_.workers) {
            worker.task.wait_for(rank.epoch_begins);
        }
        load(worker.task, worker.reader, worker.next, job_.batch * job_.gpus_per_rank());
        rank.main.wait_for(worker.task.last());
        rank.taken.push_back(rank.main.last());
    }

    void one_step(uint64_t step, uint64_t batch) {
        const uint64_t each = job_.gpus_per_rank();
        for (uint64_t number = 0; number < ranks_.size(); ++number) {
            Rank& rank = ranks_[number];
            fetch(number, batch);
            const int64_t begin = rank.main.now();
            int64_t longest = 0;
            for (uint64_t gpu = 0; gpu < each; ++gpu) {
                const int64_t busy = job_.compute.draw(mixed_bits(section_.seed, kCompute),
                                                       step * job_.gpus + number * each + gpu, &computes_below_);
                if (job_.on_processor) {
                    rank.main.compute(busy);
                } else if (busy > 0) {
                    rank.main.put(
                        {.kind = OpKind::gpu_submit, .size = busy, .arg = static_cast<int64_t>(number * each + gpu)},
                        0);
                    longest = std::max(longest, busy);
                }
            }
            for (uint64_t gpu = 0; gpu < each && longest > 0; ++gpu) {
                rank.main.put({.kind = OpKind::gpu_wait, .arg = static_cast<int64_t>(number * each + gpu)},
                              std::max<int64_t>(begin + longest - rank.main.now(), 0));
            }
            rank.main.compute(job_.overhead.draw(mixed_bits(section_.seed, kOverhead), step * job_.ranks + number,
                                                 &overheads_below_));
            rank.main.mark(step_name_, step, MarkerPhase::instant);
        }
        if (job_.sync == TrainingJob::Sync::step) {
            meet();
        }
        if (job_.checkpoint_steps != 0 && (step + 1) % job_.checkpoint_steps == 0) {
            checkpoint(step + 1);
        }
    }

    /// All ranks wait until all are here: rank 0 for the others, and they for it.
    void meet() {
        if (ranks_.size() < 2) {
            return;
        }
        std::vector<TaskMoment> others;
        for (size_t i = 1; i < ranks_.size(); ++i) {
            others.push_back(ranks_[i].main.last());
        }
        ranks_[0].main.wait_for(others);
        const TaskMoment all = ranks_[0].main.last();
        for (size_t i = 1; i < ranks_.size(); ++i) {
            ranks_[i].main.wait_for(all);
        }
    }

    /// `step`: how many the job made so far; 0 where the epoch was cut short, after which no checkpoint is made.
    void end_epoch(uint64_t epoch, uint64_t step) {
        for (Rank& rank : ranks_) {
            rank.main.mark(epoch_name_, epoch + 1, MarkerPhase::end);
        }
        if (job_.sync != TrainingJob::Sync::none) {
            meet();
        }
        if (step != 0 && job_.checkpoint_epochs != 0 && (epoch + 1) % job_.checkpoint_epochs == 0) {
            checkpoint(step);
        }
    }

    void checkpoint(uint64_t step) {
        ++checkpoints_;
        const auto ranks = static_cast<int64_t>(ranks_.size());
        const std::string path = section_.directory + "/" + section_.name + "-checkpoint-" + std::to_string(step);
        switch (job_.checkpoint_mode) {
            case TrainingJob::Checkpoint::blocking:
                save_checkpoint(place_.log, job_, ranks_[0].main, path + ".pt", job_.checkpoint_size);
                break;
            case TrainingJob::Checkpoint::async: {
                Rank& first = ranks_[0];
                if (saved_.is_set()) {
                    first.main.wait_for(saved_);  // one at a time
                }
                first.main.compute(job_.checkpoint_copy_ns);
                first.saver->wait_for(first.main.last());
                save_checkpoint(place_.log, job_, *first.saver, path + ".pt", job_.checkpoint_size);
                saved_ = first.saver->last();
                break;
            }
            case TrainingJob::Checkpoint::sharded:
                for (int64_t i = 0; i < ranks; ++i) {
                    const int64_t part = job_.checkpoint_size / ranks + (i < job_.checkpoint_size % ranks ? 1 : 0);
                    save_checkpoint(place_.log, job_, ranks_[static_cast<size_t>(i)].main,
                                    path + "-rank-" + std::to_string(i) + ".pt", part);
                }
                break;
        }
        if (job_.checkpoint_mode != TrainingJob::Checkpoint::async) {
            meet();
        }
    }

    void finish(std::vector<TaskMoment>& ends, uint64_t steps) {
        GeneratedSection& out = place_.result.sections.emplace_back();
        out.name = section_.name;
        out.files = data_.files();
        out.file_bytes = data_.bytes();
        out.steps = steps;
        out.begin = begin_;
        out.drew("sample_size", job_.sample_size, data_.sizes_below(), job_.samples);
        out.drew("decode", job_.decode, decodes_below_, decoded_);
        out.drew("compute", job_.compute, computes_below_, steps * job_.gpus);
        out.drew("overhead", job_.overhead, overheads_below_, steps * job_.ranks);
        out.fewer_steps = fewer_steps(job_, steps);
        out.no_checkpoint = checkpoints_ == 0 ? no_checkpoint(job_, steps) : "";
        const auto done = [&](TaskWriter& task) {
            task.exit();
            place_.count(task);
            return task.last();
        };
        for (Rank& rank : ranks_) {
            for (Worker& worker : rank.workers) {
                worker.reader.close(worker.task);
                rank.main.join(done(worker.task));
            }
            if (rank.own) {
                rank.own->close(rank.main);
            }
            if (rank.turns) {
                rank.main.join(done(rank.turns->taker));
            }
            if (rank.saver) {
                rank.main.join(done(*rank.saver));
            }
            ends.push_back(done(rank.main));
            out.end = std::max(out.end, rank.main.now());
        }
    }

    LogPlace& place_;
    const JobSection& section_;
    const TrainingJob& job_;
    DataSet data_;
    StringId epoch_name_, step_name_;
    std::vector<Rank> ranks_;
    std::optional<EpochOrder> order_;
    std::optional<Permutation> file_order_;  // of a stream
    std::vector<uint64_t> own_next_;         // as Worker::next, of ranks without workers
    uint64_t decoded_ = 0, decodes_below_ = 0, computes_below_ = 0, overheads_below_ = 0, checkpoints_ = 0;
    int64_t begin_ = 0;
    TaskMoment saved_;
};

}  // namespace

void write_training(LogPlace& place, const JobSection& section, const TrainingJob& job,
                    const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends) {
    Training(place, section, job).write(after, ends);
}

}  // namespace reprise
