// SPDX-License-Identifier: MIT
// The transport over MPI: a plug-in of its own for each MPI, loaded where that MPI's launcher started the process
// (launched.cpp). Everything goes through one communicator, without a call that waits.
#include <mpi.h>

#include <cstdio>
#include <list>
#include <string>
#include <vector>

#include "hosts/mpi_plugin.h"
#include "hosts/transport.h"

namespace reprise {
namespace {

constexpr int kTag = 1;

class MpiTransport : public Transport {
public:
    MpiTransport() {
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
        MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
        MPI_Comm_rank(comm_, &rank_);
        MPI_Comm_size(comm_, &size_);
    }

    uint32_t rank() const override { return static_cast<uint32_t>(rank_); }
    uint32_t size() const override { return static_cast<uint32_t>(size_); }

    std::string library() const override {
        char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
        int length = 0;
        MPI_Get_library_version(text, &length);
        const std::string whole(text, static_cast<size_t>(length));
        return whole.substr(0, whole.find_first_of(",\n"));
    }

    void send(uint32_t to, const void* data, size_t bytes) override {
        Sending& one = sending_.emplace_back();
        const char* const from = static_cast<const char*>(data);
        one.bytes.assign(from, from + bytes);
        // all_sent() waits. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
        const int result = MPI_Isend(one.bytes.data(), static_cast<int>(bytes), MPI_BYTE, static_cast<int>(to), kTag,
                                     comm_, &one.request);
        if (result != MPI_SUCCESS) {
            sending_.pop_back();
        }
    }

    bool receive(uint32_t& from, std::string& into) override {
        // Open MPI looks at its sockets with every eighth call only. Between two polls of ours there is a sleep.
        constexpr int kCalls = 10;
        int there = 0;
        MPI_Status status;
        for (int call = 0; call < kCalls && there == 0; ++call) {
            if (MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &there, &status) != MPI_SUCCESS) {
                break;
            }
        }
        if (there == 0) {
            all_sent();
            return false;
        }
        int count = 0;
        MPI_Get_count(&status, MPI_BYTE, &count);
        into.resize(static_cast<size_t>(count));
        from = static_cast<uint32_t>(status.MPI_SOURCE);
        return MPI_Recv(into.data(), count, MPI_BYTE, status.MPI_SOURCE, kTag, comm_, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }

    bool all_sent() override {
        for (auto one = sending_.begin(); one != sending_.end();) {
            int done = 0;
            const bool gone = MPI_Test(&one->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
            one = gone ? sending_.erase(one) : std::next(one);
        }
        return sending_.empty();
    }

    void finish() override {
        while (!all_sent()) {
        }
        MPI_Comm_free(&comm_);
        MPI_Finalize();
    }

    void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

private:
    struct Sending {
        std::vector<char> bytes;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0, size_ = 1;
    std::list<Sending> sending_;
};

}  // namespace
}  // namespace reprise

reprise::Transport* reprise_mpi_transport() { return new reprise::MpiTransport; }
