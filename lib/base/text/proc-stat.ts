// ProcStat: some fields of /proc/PID/stat, as proc_pid_stat(5) names them.

/** The start time is in ticks since the boot. All fields are empty without a text. */
export function parseProcStat(text: string) {
  // The command in parentheses may have parentheses, and any other text.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', ppid = '', pgrp = '', session = '', tty = '', tpgid = ''] = fields;
  return { state, ppid, pgrp, session, tty, tpgid, starttime: fields[19] ?? '' };
}
