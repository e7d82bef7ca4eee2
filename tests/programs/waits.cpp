// SPDX-License-Identifier: MIT
// A task that waits for another one, which computes for 60 ms first: every way to be woken that the kernel knows.
// usage: waits HOW
// Where HOW is a wait that a signal ends, the signal is the end of a child, or SIGUSR1 by kill ("kill-...").
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>

namespace {

constexpr long kMs = 1'000'000;
char g_buffer[64];

void check(bool good, const char* what) {
    if (!good) {
        std::perror(what);
        std::_Exit(1);
    }
}

void compute(long ms) {
    timespec now{};
    const auto used = [&now] {
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return now.tv_sec * 1000 * kMs + now.tv_nsec;
    };
    const long until = used() + ms * kMs;
    while (used() < until) {
    }
}

void compute() { compute(60); }

// Computes, then does it; ends without looking at what happened.
pid_t child(const std::function<void()>& then = [] {}) {
    const pid_t pid = ::fork();
    check(pid >= 0, "fork");
    if (pid == 0) {
        compute();
        then();
        std::_Exit(0);
    }
    return pid;
}

void reap(pid_t pid) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

// Between two waits the program does something, or they would be one.
void joined(pid_t pid) {
    compute(5);
    reap(pid);
}

// --- waits that a signal ends

sigset_t only(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}

// `wait` with the signal let through, which is blocked before and after.
void interrupted(int number, int flags, const std::function<void(const sigset_t&)>& wait) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = flags;
    ::sigaction(number, &action, nullptr);
    const sigset_t set = only(number);
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &set, &before);
    const pid_t parent = ::getpid();
    const pid_t pid = child([&] {
        if (number == SIGUSR1) {
            ::kill(parent, SIGUSR1);
            compute(20);
        }
    });
    wait(before);
    joined(pid);
}

void suspended(int number) {
    interrupted(number, 0, [](const sigset_t& mask) { ::sigsuspend(&mask); });
}
void polled(int number) {
    interrupted(number, 0, [](const sigset_t& mask) { ::ppoll(nullptr, 0, nullptr, &mask); });
}
void selected(int number) {
    interrupted(number, 0, [](const sigset_t& mask) { ::pselect(0, nullptr, nullptr, nullptr, nullptr, &mask); });
}
void epolled(int number) {
    const int epoll = ::epoll_create1(0);
    interrupted(number, 0, [epoll](const sigset_t& mask) {
        epoll_event event{};
        ::epoll_pwait(epoll, &event, 1, -1, &mask);
    });
}
void taken(int number) {
    interrupted(number, 0, [number](const sigset_t&) {
        const sigset_t set = only(number);
        ::sigwaitinfo(&set, nullptr);
    });
}
void read_signal(int number) {
    const sigset_t set = only(number);
    const int fd = ::signalfd(-1, &set, 0);
    interrupted(number, 0, [fd](const sigset_t&) {
        signalfd_siginfo info{};
        check(::read(fd, &info, sizeof info) == sizeof info, "read");
    });
}
// The kernel makes the call again.
void restarted() {
    int fds[2];
    check(::pipe(fds) == 0, "pipe");
    interrupted(SIGUSR1, SA_RESTART, [&](const sigset_t& mask) {
        ::sigprocmask(SIG_SETMASK, &mask, nullptr);
        ::close(fds[1]);
        check(::read(fds[0], g_buffer, sizeof g_buffer) == 0, "read");  // until the child has ended
    });
}
// A sleep that ends early ...
void slept(bool on) {
    const timespec start = [] {
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        return now;
    }();
    timespec until = start;
    until.tv_sec += on ? 1 : 30;
    interrupted(SIGCHLD, 0, [&](const sigset_t& mask) {
        ::sigprocmask(SIG_SETMASK, &mask, nullptr);
        int result = ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
        while (on && result == EINTR) {  // ... and one that goes on
            result = ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
        }
    });
}

// --- children by their numbers inside a PID namespace

void inside(const std::function<void()>& job) {
    check(::unshare(CLONE_NEWPID) == 0, "unshare");
    const pid_t init = ::fork();
    check(init >= 0, "fork");
    if (init == 0) {
        job();
        std::_Exit(0);
    }
    reap(init);
}
void two_inside() {
    for (int i = 0; i < 2; ++i) {
        joined(child());
    }
}
void waitid_inside() {
    const pid_t pid = child();
    siginfo_t info{};
    check(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) == 0, "waitid");
    compute(5);
}
// The parent ends first: the first process of the namespace gets its child.
void reparented_inside() {
    const pid_t parent = ::fork();
    if (parent == 0) {
        child();
        std::_Exit(0);
    }
    reap(parent);
    check(::waitpid(-1, nullptr, 0) > 0, "waitpid");
    compute(5);
}

// --- queues of messages

void system_v() {
    const int queue = ::msgget(IPC_PRIVATE, 0600);
    check(queue >= 0, "msgget");
    struct {
        long type = 1;
        char text[8]{};
    } message;
    const pid_t pid = child([&] {
        ::msgsnd(queue, &message, sizeof message.text, 0);
        compute(20);
    });
    const bool got = ::msgrcv(queue, &message, sizeof message.text, 0, 0) == sizeof message.text;
    ::msgctl(queue, IPC_RMID, nullptr);
    check(got, "msgrcv");
    joined(pid);
}
void semaphores() {
    const int set = ::semget(IPC_PRIVATE, 1, 0600);
    check(set >= 0, "semget");
    sembuf give{0, 1, 0}, take{0, -1, 0};
    const pid_t pid = child([&] {
        ::semop(set, &give, 1);
        compute(20);
    });
    const bool got = ::semop(set, &take, 1) == 0;
    ::semctl(set, 0, IPC_RMID);
    check(got, "semop");
    joined(pid);
}
void posix() {
    mq_attr attributes{};
    attributes.mq_maxmsg = 2;
    attributes.mq_msgsize = sizeof g_buffer;
    const std::string name = "/reprise-waits-" + std::to_string(::getpid());
    const mqd_t queue = ::mq_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
    check(queue >= 0, "mq_open");
    ::mq_unlink(name.c_str());
    const pid_t pid = child([&] {
        ::mq_send(queue, g_buffer, 8, 0);
        compute(20);
    });
    check(::mq_receive(queue, g_buffer, sizeof g_buffer, nullptr) == 8, "mq_receive");
    joined(pid);
}

// --- stops

// A child that computes and stops itself, until it is told to go on.
void stopped(bool by_waitid) {
    const pid_t pid = child([] {
        ::raise(SIGSTOP);
        compute(20);
    });
    siginfo_t info{};
    int status = 0;
    check(by_waitid ? ::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED) == 0
                    : ::waitpid(pid, &status, WUNTRACED) == pid,
          "wait for the stop");
    compute(5);
    ::kill(pid, SIGCONT);
    joined(pid);
}

// A parent that computes before it lets its child go on.
void continued() {
    const pid_t pid = ::fork();
    check(pid >= 0, "fork");
    if (pid == 0) {
        ::raise(SIGSTOP);
        compute(5);
        std::_Exit(0);
    }
    check(::waitpid(pid, nullptr, WUNTRACED) == pid, "waitpid");
    compute();
    ::kill(pid, SIGCONT);
    joined(pid);
}

// --- sockets of this machine

int bound(int type, sockaddr_in& address) {
    const int fd = ::socket(AF_INET, type, 0);
    address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    check(fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
              ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0,
          "bind");
    return fd;
}
void udp() {
    sockaddr_in to{};
    const int fd = bound(SOCK_DGRAM, to);
    const int from = ::socket(AF_INET, SOCK_DGRAM, 0);
    const pid_t pid = child([&] {
        ::sendto(from, g_buffer, 8, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
        compute(20);
    });
    check(::recv(fd, g_buffer, sizeof g_buffer, 0) == 8, "recv");
    joined(pid);
}
// Waits for a connection, or for bytes on one that is there (`poll`: of both by poll).
void tcp(bool there, bool poll) {
    sockaddr_in to{};
    const int listener = bound(SOCK_STREAM, to);
    check(::listen(listener, 1) == 0, "listen");
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    const auto connect = [&] { check(::connect(client, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0, "connect"); };
    if (there) {
        connect();
    }
    const int server = there ? ::accept(listener, nullptr, nullptr) : listener;
    const pid_t pid = child([&] {
        if (there) {
            check(::write(client, g_buffer, 8) == 8, "write");
        } else {
            connect();
        }
        compute(20);
    });
    if (poll) {
        pollfd one{server, POLLIN, 0};
        check(::poll(&one, 1, -1) == 1, "poll");
    }
    if (there) {
        check(::read(server, g_buffer, sizeof g_buffer) == 8, "read");
    } else {
        check(::accept(server, nullptr, nullptr) >= 0, "accept");
    }
    joined(pid);
}

void terminal() {
    int master = -1, slave = -1;
    check(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0, "openpty");
    const pid_t pid = child([&] {
        check(::write(slave, "written\n", 8) == 8, "write");
        compute(20);
    });
    check(::read(master, g_buffer, sizeof g_buffer) > 0, "read");
    joined(pid);
}

// --- locks of ranges

void locked(int command) {
    char name[] = "/tmp/reprise-waits-XXXXXX";
    const int fd = ::mkstemp(name), again = ::open(name, O_RDWR);
    check(fd >= 0 && again >= 0, name);
    ::unlink(name);
    int ready[2];
    check(::pipe(ready) == 0, "pipe");
    struct flock lock {};
    lock.l_type = F_WRLCK;
    const pid_t pid = ::fork();
    if (pid == 0) {
        check(::fcntl(again, command, &lock) == 0 && ::write(ready[1], "", 1) == 1, "F_SETLK");
        compute();
        lock.l_type = F_UNLCK;
        ::fcntl(again, command, &lock);
        compute(20);
        std::_Exit(0);
    }
    check(::read(ready[0], g_buffer, 1) == 1, "read");
    compute(5);
    check(::fcntl(fd, command == F_SETLK ? F_SETLKW : F_OFD_SETLKW, &lock) == 0, "F_SETLKW");
    joined(pid);
}

using Ways = std::map<std::string, std::function<void()>>;

Ways all_ways() {
    return {
        {"sigsuspend", [] { suspended(SIGCHLD); }},
        {"kill-sigsuspend", [] { suspended(SIGUSR1); }},
        {"ppoll", [] { polled(SIGCHLD); }},
        {"pselect", [] { selected(SIGCHLD); }},
        {"kill-pselect", [] { selected(SIGUSR1); }},
        {"epoll", [] { epolled(SIGCHLD); }},
        {"kill-epoll", [] { epolled(SIGUSR1); }},
        {"sigwait", [] { taken(SIGCHLD); }},
        {"kill-sigwait", [] { taken(SIGUSR1); }},
        {"signalfd", [] { read_signal(SIGCHLD); }},
        {"kill-signalfd", [] { read_signal(SIGUSR1); }},
        {"kill-restart", restarted},
        {"sleep", [] { slept(false); }},
        {"sleep-on", [] { slept(true); }},
        {"inside", [] { inside(two_inside); }},
        {"inside-twice", [] { inside([] { inside(two_inside); }); }},
        {"inside-waitid", [] { inside(waitid_inside); }},
        {"inside-reparented", [] { inside(reparented_inside); }},
        {"msgrcv", system_v},
        {"mq", posix},
        {"stop", [] { stopped(true); }},
        {"stop-wait4", [] { stopped(false); }},
        {"continue", continued},
        {"semop", semaphores},
        {"udp", udp},
        {"tcp", [] { tcp(true, false); }},
        {"tcp-poll", [] { tcp(true, true); }},
        {"accept", [] { tcp(false, false); }},
        {"accept-poll", [] { tcp(false, true); }},
        {"pty", terminal},
        {"lock", [] { locked(F_SETLK); }},
        {"lock-ofd", [] { locked(F_OFD_SETLK); }},
    };
}

}  // namespace

int main(int argc, char** argv) {
    const Ways ways = all_ways();
    const auto way = ways.find(argc > 1 ? argv[1] : "");
    if (way == ways.end()) {
        for (const auto& [name, unused] : ways) {
            std::printf("%s\n", name.c_str());
        }
        return argc > 1 ? 2 : 0;
    }
    way->second();
    return 0;
}
