/* SPDX-License-Identifier: MIT
 * Writes memory to a file by io_uring (liburing) or Linux AIO: O_DIRECT, some parts in flight, then one sync. A shared library for
 * ring_checkpoints.py, as checkpoint engines bring their own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 256 };

static int write_by_ring(int fd, char* data, long size, int depth, long part) {
    struct io_uring ring;
    int code = io_uring_queue_init((unsigned)depth, &ring, 0);
    if (code < 0) {
        return -code;
    }
    long sent = 0, done = 0;
    int in_flight = 0;
    while (done < size && code >= 0) {
        for (; in_flight < depth && sent < size; ++in_flight) {
            const long mine = size - sent < part ? size - sent : part;
            struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
            io_uring_prep_write(sqe, fd, data + sent, (unsigned)mine, (unsigned long)sent);
            io_uring_sqe_set_data64(sqe, (unsigned long)mine);
            sent += mine;
        }
        code = io_uring_submit_and_wait(&ring, 1);
        struct io_uring_cqe* cqe;
        while (code >= 0 && io_uring_peek_cqe(&ring, &cqe) == 0) {
            code = cqe->res == (int)cqe->user_data ? 0 : cqe->res < 0 ? cqe->res : -EIO;
            done += (long)cqe->user_data;
            --in_flight;
            io_uring_cqe_seen(&ring, cqe);
        }
    }
    io_uring_queue_exit(&ring);
    return code < 0 ? -code : 0;
}

static int write_by_aio(int fd, char* data, long size, int depth, long part) {
    aio_context_t context = 0;
    static __thread struct iocb blocks[MOST];
    struct io_event events[MOST];
    int unused[MOST], in_flight = 0, code = 0;
    if (syscall(SYS_io_setup, depth, &context) != 0) {
        return errno;
    }
    for (int i = 0; i < depth; ++i) {
        unused[i] = i;
    }
    for (long sent = 0; (sent < size || in_flight > 0) && code == 0;) {
        struct iocb* list[MOST];
        int n = 0;
        for (; in_flight + n < depth && sent < size; ++n) {
            const int slot = unused[depth - 1 - in_flight - n];
            const long mine = size - sent < part ? size - sent : part;
            blocks[slot] = (struct iocb){.aio_data = (unsigned)slot, .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = (unsigned)fd,
                                         .aio_buf = (unsigned long)(data + sent), .aio_nbytes = (unsigned long)mine, .aio_offset = sent};
            list[n] = &blocks[slot];
            sent += mine;
        }
        if (n > 0 && syscall(SYS_io_submit, context, n, list) != n) {
            code = errno ? errno : EIO;
        }
        in_flight += n;
        const long got = code == 0 ? syscall(SYS_io_getevents, context, 1, depth, events, NULL) : 0;
        for (long i = 0; i < got; ++i) {
            const int slot = (int)events[i].data;
            if (events[i].res != (long)blocks[slot].aio_nbytes) {
                code = EIO;
            }
            unused[depth - in_flight--] = slot;
        }
        if (got < 0 && errno != EINTR) {
            code = errno;
        }
    }
    syscall(SYS_io_destroy, context);
    return code;
}

/* `data` and `size` are multiples of 4096. 0, or an error number. */
int write_file(const char* path, char* data, long size, int depth, long part, int use_ring) {
    if (depth < 1 || depth > MOST) {
        return EINVAL;
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return errno;
    }
    int code = use_ring ? write_by_ring(fd, data, size, depth, part) : write_by_aio(fd, data, size, depth, part);
    if (code == 0 && fsync(fd) != 0) {
        code = errno;
    }
    close(fd);
    return code;
}
