// Runs the shell code of the documents without effects: every program in it is a stand-in that
// records its call, and paths below /sys lead to a folder.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { createProgram } from '../../packages/cli/lib/program.js';
import { newFolder } from '../../packages/cli/test/numalign.js';
import { createProgram as createNodeProgram } from '../../packages/kubernetes/lib/cli/program.js';
import { ROOT, read } from './documents.js';

export interface Call {
  readonly program: string;
  readonly args: readonly string[];
  /** The variables of numalign's that it was given. */
  readonly env: Readonly<Record<string, string>>;
}

const [NEXT_ARGUMENT, NEXT_CALL] = ['\x1f', '\x1e'];

const STAND_IN = `#!/bin/bash
for name in "\${!NUMALIGN_@}"; do printf '%s\\x1f' "$name=\${!name}"; done >> "$CALLS"
printf '%s\\x1f' "\${0##*/}" "$@" >> "$CALLS"
printf '\\x1e' >> "$CALLS"
`;

/** The command line, with commands that do nothing. */
export function checkedProgram(program: Command = createProgram()): Command {
  const disarm = (command: Command) => {
    command.configureOutput({ writeErr() {}, writeOut() {} });
    if (command.commands.length === 0) command.action(() => {});
    for (const each of command.commands) disarm(each);
  };
  disarm(program);
  return program;
}

function isThere(script: string | undefined): string | undefined {
  return script !== undefined && existsSync(`${ROOT}${script}`) ? undefined : `there is no ${script}`;
}

function flawIn(program: Command, args: readonly string[]): string | undefined {
  try {
    program.parse(args, { from: 'user' });
    return undefined;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? undefined : error.message;
  }
}

/** By program: what is wrong with the arguments, if anything is. */
const CHECKS: Record<string, (args: readonly string[]) => string | undefined> = {
  numalign: (args) => flawIn(checkedProgram(), args),
  'numalign-node': (args) => flawIn(checkedProgram(createNodeProgram()), args),
  // `-f FILE` and a folder with a Dockerfile.
  kubectl: (args) => args.flatMap((word, i) => (word === '-f' ? (isThere(args[i + 1]) ?? []) : []))[0],
  docker: (args) => isThere(`${args.at(-1)}/Dockerfile`),
  npm([command, name]) {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    if (command === 'install' || command === 'pack') return undefined;
    const script = command === 'run' ? name! : command!;
    return script in scripts ? undefined : `there is no script ${script}`;
  },
  bash: ([script]) => isThere(script),
  node: () => undefined,
  npx([name]) {
    const { devDependencies } = JSON.parse(read('package.json')) as {
      devDependencies: Record<string, string>;
    };
    return name! in devDependencies ? undefined : `${name} is not among devDependencies`;
  },
  gdb: () => undefined,
  'g++': () => undefined,
  mv: () => undefined,
  cp: () => undefined,
  groupadd: () => undefined,
  usermod: () => undefined,
  systemctl: () => undefined,
};

// Programs that are themselves.
const REAL = { mkdir: '/bin/mkdir', cat: '/bin/cat' };

/** `status` and `stderr` are the shell's, with what the checks have to say of the calls. */
export function runShell(text: string): { status: number | null; stderr: string; calls: Call[] } {
  const folder = newFolder();
  const [programs, log] = [join(folder, 'bin'), join(folder, 'calls')];
  mkdirSync(programs);
  writeFileSync(log, '');
  for (const name of Object.keys(CHECKS)) writeFileSync(join(programs, name), STAND_IN, { mode: 0o755 });
  for (const [name, path] of Object.entries(REAL)) {
    writeFileSync(join(programs, name), `#!/bin/sh\nexec ${path} "$@"\n`, { mode: 0o755 });
  }
  const own = text.replaceAll(/(?<![\w/])\/sys\//g, `${folder}/sys/`);
  // The kernel's folders are there already.
  for (const [, file] of own.matchAll(/> (\S+)$/gm)) {
    if (file!.startsWith(folder)) mkdirSync(dirname(file!), { recursive: true });
  }

  const { status, stderr } = spawnSync('/bin/bash', ['--norc', '-e', '-c', own], {
    cwd: folder,
    env: { PATH: programs, CALLS: log, HOME: folder },
    encoding: 'utf8',
  });
  const calls = readFileSync(log, 'utf8')
    .split(NEXT_CALL!)
    .slice(0, -1)
    .map((call) => {
      const words = call.split(NEXT_ARGUMENT!).slice(0, -1);
      const first = words.findIndex((word) => !/^NUMALIGN_\w+=/.test(word));
      const env = Object.fromEntries(words.slice(0, first).map((word) => word.split(/=(.*)/s).slice(0, 2)));
      return { program: words[first]!, args: words.slice(first + 1), env };
    });
  const complaints = calls.flatMap(({ program, args }) => CHECKS[program]!(args) ?? []);
  return { status, stderr: [stderr, ...complaints].filter(Boolean).join('\n'), calls };
}
