"""seccomp.py RULE... -- COMMAND...: runs a command under a filter that denies system calls, as a container's profile does.

RULE: ERRNO=CALL, or ERRNO=CALL:ARGUMENT=VALUE to deny it with this argument only, as a kernel that does not know the value.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"pwrite64": 18, "madvise": 28, "fcntl": 72, "fsync": 74, "fdatasync": 75, "epoll_ctl": 233, "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "migrate_pages": 256, "move_pages": 279, "inotify_init1": 294},
    "aarch64": {"epoll_ctl": 21, "fcntl": 25, "inotify_init1": 26, "pwrite64": 68, "fsync": 82, "fdatasync": 83, "madvise": 233, "mbind": 235, "get_mempolicy": 236, "set_mempolicy": 237, "migrate_pages": 238, "move_pages": 239},
}[platform.machine()]

# linux/filter.h, linux/seccomp.h, linux/prctl.h
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, DENY = 0x7FFF0000, 0x00050000
NUMBER_OFFSET, ARGUMENTS_OFFSET = 0, 16
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def deny(rule):
    name, _, what = rule.partition("=")
    call, _, argument = what.partition(":")
    tests = [(NUMBER_OFFSET, NUMBERS[call])]
    if argument:
        index, _, value = argument.partition("=")
        tests.append((ARGUMENTS_OFFSET + 8 * int(index), int(value)))
    steps = []
    for i, (offset, value) in enumerate(tests):
        steps.append(instruction(LOAD_WORD, offset))
        # Where it differs: over the other tests and the return.
        steps.append(instruction(JUMP_IF_EQUAL, value, 0, 2 * (len(tests) - i - 1) + 1))
    steps.append(instruction(RETURN, DENY | getattr(errno, name)))
    return b"".join(steps)


split = sys.argv.index("--")
rules, command = sys.argv[1:split], sys.argv[split + 1 :]
program = b"".join(map(deny, rules)) + instruction(RETURN, ALLOW)
libc = ctypes.CDLL(None, use_errno=True)
instructions = ctypes.create_string_buffer(program, len(program))
header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, header, 0, 0) != 0:
    sys.exit(f"seccomp.py: prctl: {os.strerror(ctypes.get_errno())}")
os.execvp(command[0], command)
