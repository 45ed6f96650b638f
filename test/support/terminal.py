"""Runs a command on a terminal of its own: terminal.py COLUMNS ROWS -- COMMAND...

What it prints goes to stdout. Lines on stdin: `resize COLUMNS ROWS`, `type CODE` (a character by its number, 3 being Ctrl-C), `close`. Exits as the command.
"""
import fcntl, os, pty, select, struct, sys, termios


def resize(terminal, columns, rows):
    # The kernel tells those on it, where that is another size.
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", int(rows), int(columns), 0, 0))


def obey(terminal, line):
    order, *words = line.split()
    if order == "resize":
        resize(terminal, *words)
    else:
        os.write(terminal, bytes([int(words[0])]))


columns, rows, _, *command = sys.argv[1:]
begin, begun = os.pipe()
pid, terminal = pty.fork()
if pid == 0:
    # Not before it has its size.
    os.read(begin, 1)
    os.execvp(command[0], command)
resize(terminal, columns, rows)
os.write(begun, b"x")

orders = [sys.stdin.fileno()]
is_open = True
while is_open:
    ready, _, _ = select.select([terminal, *orders], [], [])
    if terminal in ready:
        try:
            os.write(1, os.read(terminal, 65536))
        except OSError:
            # No process uses it any more.
            break
    for file in ready:
        if file == terminal:
            continue
        lines = os.read(file, 4096).decode().splitlines()
        if not lines:
            orders = []
        for line in lines:
            if line == "close":
                os.close(terminal)
                is_open = False
                break
            obey(terminal, line)
status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status))
