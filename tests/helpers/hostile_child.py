"""What a hostile child tries, each by the kernel's own calls. Runs in the sandbox's child.

`attack` answers, for each attempt, how it ended: "reached", or the name of the kernel's error.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import resource
import socket
import threading
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"
# x86_64, aarch64
NUMBERS = {
    "ptrace": (101, 117),
    "mount": (165, 40),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "pidfd_open": (434, 434),
    "process_vm_readv": (310, 270),
    "name_to_handle_at": (303, 264),
    "shmget": (29, 194),
    "shmctl": (31, 195),
    "inotify_init1": (294, 26),
    "clone3": (435, 435),
    "socketpair": (53, 199),
}
SEIZE, NEW_USER = 0x4206, 0x10000000


def _call(name, *arguments):
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    found = LIBC.syscall(ctypes.c_long(NUMBERS[name][ARM]), *given)
    if found < 0:
        raise OSError(ctypes.get_errno(), name)
    return found


def _send(family, kind, address):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        one.send(b"PING\r\n")


def _serve_tcp():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()


def _by_a_pair(address):
    """A socket that connects to nobody at first."""
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pair[0].sendto(b"PING", address)


def _fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _run():
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def _become():
    """Another program in the child's own place, which says so."""
    os.execv("/bin/sh", ["sh", "-c", "kill -USR1 $$"])  # noqa: S606


def _read_memory_of(process):
    local, remote = ctypes.create_string_buffer(8), ctypes.c_void_p(process[1])
    ours = (ctypes.c_void_p * 2)(ctypes.addressof(local), 8)
    theirs = (ctypes.c_void_p * 2)(remote.value, 8)
    _call("process_vm_readv", process[0], ours, 1, theirs, 1, 0)


def _thread():
    one = threading.Thread(target=int)
    one.start()
    one.join()


def _many_files():
    with contextlib.ExitStack() as opened:
        for _ in range(500):
            opened.enter_context(open("/dev/null"))  # noqa: PTH123


def _large(path):
    with path.open("r+b") as file:
        file.seek(100 * 10**9)
        file.write(b"x")
        file.flush()
        file.truncate(0)


def _cancel_death():
    if LIBC.prctl(1, 0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _prlimit(process):
    resource.prlimit(process, resource.RLIMIT_CORE)


def _allocate(size):
    mmap.mmap(-1, size).close()


def _mount(folder):
    _call("mount", b"none", folder, b"tmpfs", 0, None)
    _call("umount2", folder, 0)  # what is reached leaves nothing behind


def _share_memory():
    _call("shmctl", _call("shmget", 0, 4096, 0o1600), 0, None)


def _asked(name, *arguments):
    """What the kernel itself refuses has reached it."""
    try:
        return os.close(_call(name, *arguments))
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EFAULT):
            raise


def _attempts(given):
    import fcntl

    home, victim = Path(given["home"]), given["victim"]
    record, inside = home / "record.sqlite", home / "made"
    tcp, udp = ("127.0.0.1", given["tcp"]), ("127.0.0.1", given["udp"])
    unix, stream, packets = socket.AF_UNIX, socket.SOCK_STREAM, socket.SOCK_DGRAM
    parent = Path("/proc") / str(victim)
    output, source = Path(given["output"]), Path(given["input"])
    return {
        "connect by TCP": lambda: _send(socket.AF_INET, stream, tcp),
        "serve by TCP": _serve_tcp,
        "send by UDP": lambda: _send(socket.AF_INET, packets, udp),
        "open a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close(),
        "open a netlink socket": lambda: socket.socket(16, socket.SOCK_RAW, 0).close(),
        "connect to Redis by its file": lambda: _send(unix, stream, given["redis"]),
        "send to a socket by its file": lambda: _by_a_pair(given["packets"]),
        "connect to an abstract socket": lambda: _send(unix, stream, "\0" + given["abstract"]),
        "read the record": record.read_bytes,
        "write the record": lambda: record.open("r+b").close(),
        "cut off the record": lambda: os.truncate(record, 100),
        "list the home": lambda: list(home.iterdir()),
        "make a file": lambda: inside.write_bytes(b"x"),
        "make a folder": (home / "folder").mkdir,
        "make a link": lambda: (home / "link").symlink_to(record),
        "make a second name": lambda: os.link(record, home / "second"),
        "make a pipe": lambda: os.mkfifo(home / "pipe"),
        "delete a file": (home / "old").unlink,
        "rename a file": lambda: (home / "older").rename(home / "renamed"),
        "change the mode of the record": lambda: record.chmod(0o644),
        "change the times of the record": lambda: os.utime(record, (1, 1)),
        "mark the record": lambda: os.setxattr(record, "user.mark", b"x"),
        "write the input": lambda: source.open("r+b").close(),
        "write beside the output": lambda: output.with_name("beside").write_bytes(b"x"),
        "read the record by another way": Path(f"/proc/self/root{record}").read_bytes,
        "read /etc": Path("/etc/passwd").read_bytes,
        "read the passwords": Path("/etc/shadow").read_bytes,
        "read what is connected": Path("/proc/net/tcp").read_bytes,
        "read what is connected by another way": Path(
            f"/proc/self/task/{os.getpid()}/net/unix"
        ).read_bytes,
        "list other processes": lambda: list(Path("/proc").iterdir()),
        "read the parent's memory": lambda: (parent / "mem").open("rb").close(),
        "read the parent's environment": (parent / "environ").read_bytes,
        "read the parent's command": (parent / "cmdline").read_bytes,
        "read the parent's memory by a call": lambda: _read_memory_of(given["memory"]),
        "trace the parent": lambda: _call("ptrace", SEIZE, victim, 0, 0),
        "signal the parent": lambda: os.kill(victim, 28),
        "let the kernel signal the parent": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, victim),
        "limit the parent": lambda: _prlimit(victim),
        "bind the parent to a core": lambda: os.sched_setaffinity(victim, {0}),
        "slow the parent": lambda: os.setpriority(os.PRIO_PROCESS, victim, 19),
        "hold the parent": lambda: os.close(_call("pidfd_open", victim, 0)),
        "outlive the parent": _cancel_death,
        "fork": _fork,
        "start a thread": _thread,
        "run a program": _run,
        "make a program in memory": lambda: os.close(_call("memfd_create", b"x", 0)),
        "allocate 8 GB": lambda: _allocate(8 << 30),
        "write 100 GB": lambda: _large(output),
        "open 500 files": _many_files,
        "io_uring": lambda: os.close(_call("io_uring_setup", 4, ctypes.create_string_buffer(120))),
        "mount": lambda: _mount(str(home / "mounted").encode()),
        "chroot": lambda: _call("chroot", b"/"),
        "become root of a namespace": lambda: _call("unshare", NEW_USER),
        "load a filter into the kernel": lambda: _asked("bpf", 0, None, 0),
        "measure the kernel": lambda: _asked("perf_event_open", None, 0, 0, 0, 0),
        "stop the kernel at a page": lambda: _asked("userfaultfd", 1),
        "hold a key": lambda: _call("add_key", b"user", b"x", b"y", 1, -2),
        "share memory": _share_memory,
        "watch files": lambda: os.close(_call("inotify_init1", 0)),
        "call what is newer": lambda: _asked("clone3", None, 0),
    }


def _how(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    except (MemoryError, ValueError, RuntimeError) as error:
        return type(error).__name__
    return "reached"


def attack(inputs, outputs, parameters):
    return {name: _how(attempt) for name, attempt in _attempts(parameters).items()}


def raise_limits(inputs, outputs, parameters):
    names = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_CORE")
    return {name: _how(lambda name=name: _raise(getattr(resource, name))) for name in names}


def _raise(limit):
    _, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (hard + 1, hard + 1))


def surroundings(inputs, outputs, parameters):
    return {"environment": dict(os.environ), "files": sorted(_open()), "threads": _threads()}


def _open():
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            yield str(each.readlink())


def _threads():
    (line,) = (
        each
        for each in Path("/proc/self/status").read_text().splitlines()
        if each.startswith("Threads:")
    )
    return int(line.split()[1])


def _machine_code(code):
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()


def call_of_32_bits(inputs, outputs, parameters):
    """Ask for the id by int 0x80, as a program of 32 bits calls it."""
    return {"pid": _machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")}


def call_of_x32(inputs, outputs, parameters):
    return {"pid": LIBC.syscall(ctypes.c_long(0x40000000 | 39))}


def become(inputs, outputs, parameters):
    _become()


def compute(inputs, outputs, parameters):
    while True:
        pass


def wait(inputs, outputs, parameters):
    threading.Event().wait()


def crash(inputs, outputs, parameters):
    ctypes.string_at(0)


def be_killed(inputs, outputs, parameters):
    os.kill(os.getpid(), 9)


def say(inputs, outputs, parameters):
    """Write to the parent's pipe what is no answer."""
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if int(each.name) > 2 and str(each.readlink()).startswith("pipe:"):
                os.write(int(each.name), bytes.fromhex(parameters["bytes"]))
    threading.Event().wait()


def allocate(inputs, outputs, parameters):
    return {"bytes": len(bytearray(parameters["bytes"]))}


def refuse(inputs, outputs, parameters):
    from workers.sandbox.child import InputRefused

    raise InputRefused(parameters["text"])
