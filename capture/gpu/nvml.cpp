// SPDX-License-Identifier: MIT
#include "capture/gpu/nvml.h"

#include <dlfcn.h>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

namespace reprise {
namespace {

// What is used of nvml.h, whose interface is stable: results are ints, 0 is success.
struct Utilization {
    unsigned gpu, memory;
};
using NvmlDevice = void*;

}  // namespace

struct NvmlSampler::Impl {
    ~Impl() {
        if (handle) {
            dlclose(handle);
        }
    }

    template <class Function>
    bool find(const char* name, Function& into) {
        into = reinterpret_cast<Function>(dlsym(handle, name));
        if (!into) {
            absent = std::string("the library has no function ") + name;
        }
        return into != nullptr;
    }

    void open(const std::string& library) {
        handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            absent = "NVIDIA's management library was not found (" + library + ")";
            return;
        }
        unsigned count = 0;
        int (*count_of)(unsigned*) = nullptr;
        int (*device_at)(unsigned, NvmlDevice*) = nullptr;
        int (*begin)() = nullptr;
        if (!find("nvmlInit_v2", begin) || !find("nvmlDeviceGetCount_v2", count_of) ||
            !find("nvmlDeviceGetHandleByIndex_v2", device_at) || !find("nvmlDeviceGetUtilizationRates", utilization) ||
            !find("nvmlShutdown", end)) {
            return;
        }
        if (const int rc = begin(); rc != 0) {
            absent = "NVIDIA's management library does not start: error " + std::to_string(rc);
            return;
        }
        begun = true;
        if (count_of(&count) != 0 || count == 0) {
            absent = "NVIDIA's management library sees no device";
        }
        for (unsigned i = 0; i < count; ++i) {
            NvmlDevice device = nullptr;
            devices.push_back(device_at(i, &device) == 0 ? device : nullptr);
        }
        sums.resize(devices.size());
    }

    void sample() {
        for (size_t i = 0; i < devices.size(); ++i) {
            Utilization now{};
            if (!devices[i] || utilization(devices[i], &now) != 0) {
                continue;
            }
            ++sums[i].samples;
            sums[i].percent += now.gpu;
        }
    }

    void run(int period_ms) {
        std::unique_lock guard(lock);
        do {
            sample();
        } while (!ending.wait_for(guard, std::chrono::milliseconds(period_ms), [&] { return stop; }));
    }

    void* handle = nullptr;
    bool begun = false, stop = false;
    std::string absent;
    int (*utilization)(NvmlDevice, Utilization*) = nullptr;
    int (*end)() = nullptr;
    std::vector<NvmlDevice> devices;
    std::vector<NvmlSampler::Device> sums;
    std::mutex lock;
    std::condition_variable ending;
    std::thread thread;
};

NvmlSampler::NvmlSampler(const std::string& library, int period_ms) : impl_(std::make_unique<Impl>()) {
    impl_->open(library);
    if (!impl_->absent.empty()) {
        return;
    }
    // Signals are for the recorder, which waits for them: this thread takes none.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    impl_->thread = std::thread([this, period_ms] { impl_->run(period_ms); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

NvmlSampler::~NvmlSampler() { finish(); }

const std::string& NvmlSampler::absent() const { return impl_->absent; }

std::vector<NvmlSampler::Device> NvmlSampler::finish() {
    if (impl_->thread.joinable()) {
        {
            const std::lock_guard guard(impl_->lock);
            impl_->stop = true;
        }
        impl_->ending.notify_all();
        impl_->thread.join();
        for (Device& device : impl_->sums) {
            if (device.samples) {
                device.percent /= static_cast<double>(device.samples);
            }
        }
    }
    if (impl_->begun) {
        impl_->end();
    }
    impl_->begun = false;
    return impl_->sums;
}

}  // namespace reprise
