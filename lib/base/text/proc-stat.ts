// ProcStat: some fields of /proc/PID/stat, as proc_pid_stat(5) names them.

export interface ProcStat {
  readonly state: string;
  readonly ppid: string;
  readonly pgrp: string;
  /** The terminal; `0`: none. */
  readonly tty: string;
  /** The group in the foreground of the terminal. */
  readonly tpgid: string;
  /** When the process started, in ticks since the boot. */
  readonly starttime: string;
}

/** All fields are empty without a text. */
export function parseProcStat(text: string): ProcStat {
  // The command in parentheses may have parentheses, and any other text.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', ppid = '', pgrp = '', , tty = '', tpgid = ''] = fields;
  return { state, ppid, pgrp, tty, tpgid, starttime: fields[19] ?? '' };
}
