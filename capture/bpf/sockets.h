/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* TCP connections that followed tasks use: their addresses, and how they do. Only calls on sockets come here. */
#ifndef REPRISE_CAPTURE_SOCKETS_H
#define REPRISE_CAPTURE_SOCKETS_H

#include "common.h"

#define AF_INET6 10
#define TELL_AGAIN_NS 1000000000ULL

const volatile bool want_network = 0;

/* By the address of the kernel's struct sock, which may become another connection's: `name` shows it. */
struct told_socket {
    __u64 name, inode, time;
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, __u64);
    __type(value, struct told_socket);
} sockets SEC(".maps");

#define MAPPED_MARK 0xffff0000u /* bytes 8 to 11 of an IPv4 address as IPv6 has it, as a little-endian number */

static __always_inline void put_mapped(raw_u8* out, __u32 address) {
    __u32* words = (__u32*)out;
    words[0] = words[1] = 0;
    words[2] = MAPPED_MARK;
    words[3] = address;
}

static __always_inline void put_connection(struct sock* sock, __u64 name, __u64 inode, __u64 now) {
    struct raw_socket* record = RESERVE(raw_socket);
    if (!record) {
        return;
    }
    fill_head(&record->head, RAW_SOCKET, sizeof *record, 0, now);
    record->head.pid = 0;
    record->inode = inode;
    record->peer = name;
    record->family = BPF_CORE_READ(sock, __sk_common.skc_family);
    record->pad = 0;
    put_mapped(record->local, BPF_CORE_READ(sock, __sk_common.skc_rcv_saddr));
    put_mapped(record->remote, BPF_CORE_READ(sock, __sk_common.skc_daddr));
    if (record->family == AF_INET6 && bpf_core_field_exists(sock->__sk_common.skc_v6_daddr)) {
        BPF_CORE_READ_INTO((struct in6_addr*)record->local, sock, __sk_common.skc_v6_rcv_saddr);
        BPF_CORE_READ_INTO((struct in6_addr*)record->remote, sock, __sk_common.skc_v6_daddr);
    }
    record->local_port = BPF_CORE_READ(sock, __sk_common.skc_num);
    record->remote_port = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));
    record->net = 0;
    if (bpf_core_field_exists(sock->__sk_common.skc_net)) {
        record->net = BPF_CORE_READ(sock, __sk_common.skc_net.net, ns.inum);
    }
    struct tcp_sock* tcp = (struct tcp_sock*)sock;
    record->sent = bpf_core_field_exists(tcp->bytes_sent) ? BPF_CORE_READ(tcp, bytes_sent) : 0;
    record->received = bpf_core_field_exists(tcp->bytes_received) ? BPF_CORE_READ(tcp, bytes_received) : 0;
    record->retransmits = bpf_core_field_exists(tcp->total_retrans) ? BPF_CORE_READ(tcp, total_retrans) : 0;
    record->rtt_us = bpf_core_field_exists(tcp->srtt_us) ? BPF_CORE_READ(tcp, srtt_us) >> 3 : 0;
    SUBMIT(record);
}

/* A followed task has used the connection that is called `name`. */
static __always_inline void note_connection(struct sock* sock, struct socket* socket, __u64 name) {
    const __u64 address = (__u64)sock, now = bpf_ktime_get_ns();
    const struct told_socket* told = bpf_map_lookup_elem(&sockets, &address);
    if (told && told->name == name && now - told->time < TELL_AGAIN_NS) {
        return;
    }
    struct told_socket next = {.name = name, .time = now};
    next.inode = BPF_CORE_READ((struct socket_alloc*)socket, vfs_inode.i_ino);
    bpf_map_update_elem(&sockets, &address, &next, 0);
    put_connection(sock, name, next.inode, now);
}

SEC(HOOK "tcp_destroy_sock")
int BPF_PROG(connection_over, struct sock* sock) {
    const __u64 address = (__u64)sock;
    const struct told_socket* told = bpf_map_lookup_elem(&sockets, &address);
    if (!told) {
        return 0;
    }
    put_connection(sock, told->name, told->inode, bpf_ktime_get_ns());
    bpf_map_delete_elem(&sockets, &address);
    return 0;
}

#endif
