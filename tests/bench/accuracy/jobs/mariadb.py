#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A MariaDB server of its own under a small load: InnoDB with native asynchronous I/O past the page cache, and a buffer pool much
smaller than the table.

    mariadb.py make DATA ROWS                     a data folder with a table of ROWS rows of 768 bytes
    mariadb.py run DATA OUT CLIENTS COUNT MIB     CLIENTS programs send COUNT statements each, while another one scans the table;
                                                  the buffer pool has MIB

Prints "span SECONDS busy 0": from before the clients start until all have ended; marks it "span". No server outlives it."""

import ctypes
import pathlib
import random
import signal
import subprocess
import sys
import time

SERVER = ("mariadbd", "--no-defaults", "--user=root", "--skip-networking", "--skip-grant-tables", "--innodb-flush-method=O_DIRECT",
          "--innodb-use-native-aio=ON", "--innodb-log-file-size=16M", "--innodb-read-io-threads=2", "--innodb-write-io-threads=2",
          "--innodb-buffer-pool-dump-at-shutdown=OFF", "--innodb-buffer-pool-load-at-startup=OFF", "--performance-schema=OFF",
          "--lc-messages-dir=/usr/share/mysql", "--pid-file=server.pid")


def make(data, rows):
    subprocess.run(["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}", "--auth-root-authentication-method=normal",
                    "--skip-test-db", "--skip-name-resolve"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # A statement per line. Random bodies, so that no device in memory compresses them away.
    text = ("create database load_;\nuse load_;\ncreate table items(id int primary key, k int, body varbinary(1000)) engine=innodb;\n"
            f"insert into items select seq, (seq * 7919) % 10007, {' '.join(['concat('] + [f'unhex(sha2(seq + {i}, 512)),' for i in range(0, 12000000, 1000000)])} '')"
            f" from seq_1_to_{rows};\n")
    subprocess.run([*SERVER, f"--datadir={data}", "--bootstrap", "--innodb-buffer-pool-size=64M"], input=text, text=True, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def statements(number, count, rows):
    """Of ten, seven read a row, one a hundred rows, two change one."""
    source = random.Random(number)
    for _ in range(count):
        what, row = source.randrange(10), source.randrange(1, rows + 1)
        if what < 7:
            yield f"select k from items where id = {row};"
        elif what < 8:
            yield f"select sum(length(body)) from items where id between {row} and {row + 100};"
        else:
            yield f"update items set k = k + 1 where id = {row};"


def wait_for(server, words):
    for _ in range(600):
        if server.poll() is not None:
            sys.exit(f"mariadb.py: the server ended with code {server.returncode}")
        if subprocess.run([*words, "-e", "select 1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return
        time.sleep(0.1)
    sys.exit("mariadb.py: the server does not answer")


def ask(words, texts):
    """All at once; each on a connection of its own."""
    clients = [(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True), text) for text in texts]
    for client, text in clients:  # a pipe holds 64 KiB; what is more waits for the client, and that for the server
        client.stdin.write(text)
        client.stdin.close()
    for client, _ in clients:
        if client.wait() != 0:
            sys.exit(f"mariadb.py: a client ended with code {client.returncode}")


def run(data, out, clients, count, pool):
    import reprise

    socket = out / "socket"
    server = subprocess.Popen([*SERVER, f"--datadir={data}", f"--socket={socket}", f"--log-error={out / 'error.log'}", f"--innodb-buffer-pool-size={pool}M",
                               "--innodb-random-read-ahead=ON"],
                              preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
    words = ["mariadb", "--no-defaults", f"--socket={socket}", "-u", "root", "-BN", "load_"]
    try:
        wait_for(server, words)
        rows = int(subprocess.run([*words, "-e", "select max(id) from items"], check=True, stdout=subprocess.PIPE, text=True).stdout)
        texts = ["\n".join(statements(number, count, rows)) for number in range(clients)]
        reprise.begin("span")
        begin = time.monotonic()
        ask(words, [*texts, "select sum(length(body)) from items;"])
        reprise.end("span")
        print("span %.6f busy 0" % (time.monotonic() - begin))
    finally:
        server.terminate()
        server.wait()


if sys.argv[1] == "make":
    make(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
else:
    run(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]))
