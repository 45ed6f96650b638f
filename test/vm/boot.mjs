// Boots a throw-away machine under QEMU. Its files are the host's, read-only, under a layer of
// memory.
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  statSync,
  unwatchFile,
  watchFile,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { withTap } from './tap.mjs';

// A model that shows dies and SMT. level: QEMU 10.0 fails an assertion if leaf 0x1f, the
// topology's, is answered as an unknown leaf. Emulated throughout: /dev/kvm of a virtual machine
// often cannot start a stock kernel.
const CPU = 'Skylake-Server,vendor=GenuineIntel,level=0x20';
// rcu_expedited: emulated CPUs may be late for the timers of ordinary grace periods, and each
// process that moves to a cgroup waits for one.
const KERNEL_ARGUMENTS =
  'console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable random.trust_cpu=1 rcupdate.rcu_expedited=1';
/** The time that a machine has to report what its processes wait for. */
const ANSWER_MS = 20_000;

const shared = (tag, path, more = '') => [
  ...['-fsdev', `local,id=${tag},path=${path},security_model=none,multidevs=remap${more}`],
  ...['-device', `virtio-9p-pci,bus=pcie.0,fsdev=${tag},mount_tag=${tag}`],
];

const quoted = (word) => `'${word.replaceAll("'", `'\\''`)}'`;

/**
 * Runs a command in the working folder of this process. Returns its exit status (undefined if the
 * machine gave none), QEMU's complaints, if the command printed anything, if its time ran out, what
 * its processes waited for if it printed nothing for `stillMs` (each with its state and its place
 * in the kernel; empty if the machine did not answer), and the machine as lstopo saw it before.
 * `console`: a file for the kernel's messages; `temporary`: a folder for files that are not needed
 * afterwards; `bootMs`: the time until the command prints something; `system`: the folder of another
 * system than the host's, which sees the working folder and Node. The machine ends with this process;
 * `signal` ends it earlier.
 *
 * @param shape one of {@link SHAPES}
 */
export async function boot(
  shape,
  { image, initrd },
  emulator,
  command,
  {
    cwd,
    console,
    temporary,
    bootMs,
    stillMs,
    timeoutMs,
    disk,
    system,
    variables: more = {},
    signal,
    onOutput,
  },
) {
  const job = mkdtempSync(join(temporary, 'job-'));
  const paths = Object.fromEntries(
    ['command', 'output', 'processes', 'status', 'xml'].map((name) => [name, join(job, name)]),
  );
  const { PATH = '', HOME = '', XDG_CACHE_HOME = '', NUMALIGN_TEST_LONG = '' } = process.env;
  const variables = { PATH, HOME, XDG_CACHE_HOME, NUMALIGN_TEST_LONG, NUMALIGN_SHAPE: shape.name, ...more };
  const environment = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}`);
  writeFileSync(
    paths.command,
    [
      ...environment,
      ...(shape.offline ?? []).map((cpu) => `echo 0 >/sys/devices/system/cpu/cpu${cpu}/online`),
      'lstopo-no-graphics --whole-io --of xml >/job/xml',
      `cd ${quoted(cwd)} || exit 125`,
      command.map(quoted).join(' '),
      '',
    ].join('\n'),
  );
  writeFileSync(paths.output, '');
  const places = system === undefined ? [] : [`system=${system}`, `path=${cwd}`, `path=${process.execPath}`];
  const append = [KERNEL_ARGUMENTS, shape.append ?? '', ...places.map((place) => `numalign.${place}`)];
  const args = [
    ...emulator.arguments,
    ...[
      '-machine',
      'q35',
      '-accel',
      'tcg,thread=multi',
      '-cpu',
      CPU,
      '-display',
      'none',
      '-nodefaults',
      '-no-reboot',
    ],
    ...shape.arguments,
    ...['-kernel', image, '-initrd', initrd, '-append', append.join(' ')],
    ...shared('host', '/', ',readonly=on'),
    ...shared('job', job),
    ...(disk ? ['-drive', `if=virtio,format=raw,file=${disk}`] : []),
    ...['-chardev', `stdio,id=console,signal=off,logfile=${console}`, '-serial', 'chardev:console'],
  ];
  let read = 0;
  // Whole lines as they come.
  const follow = (isOver) => {
    const bytes = readFileSync(paths.output);
    const end = isOver ? bytes.length : bytes.lastIndexOf('\n') + 1;
    if (end <= read) return;
    onOutput(bytes.subarray(read, end).toString('utf8'));
    read = end;
    clearTimeout(timers.still);
    timers.still = setTimeout(ask, stillMs);
  };
  watchFile(paths.output, { interval: 200 }, () => follow(false));
  const [program, ...words] = [...(shape.hasTap ? withTap() : []), emulator.program, ...args];
  const qemu = spawn(program, words, { stdio: ['pipe', 'ignore', 'pipe'] });
  // It may have ended.
  qemu.stdin.on('error', () => {});
  const kill = () => qemu.kill('SIGKILL');
  // Before the folders are removed.
  process.prependListener('exit', kill);
  signal?.addEventListener('abort', kill);
  let complaint = '';
  qemu.stderr.on('data', (data) => (complaint += data));
  let isTooLate = false;
  let isStill = false;
  const ask = () => {
    isStill = true;
    qemu.stdin.write('\n');
    timers.answer = setTimeout(kill, ANSWER_MS);
  };
  const timers = {
    boot: setTimeout(() => read === 0 && kill(), bootMs),
    whole: setTimeout(() => {
      isTooLate = true;
      kill();
    }, timeoutMs),
  };
  try {
    await new Promise((resolve, reject) => qemu.once('error', reject).once('close', resolve));
  } finally {
    unwatchFile(paths.output);
    follow(true);
    Object.values(timers).forEach(clearTimeout);
    process.off('exit', kill);
  }
  const status =
    existsSync(paths.status) && statSync(paths.status).size > 0
      ? Number(readFileSync(paths.status, 'utf8'))
      : undefined;
  const textOf = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);
  const xml = textOf(paths.xml);
  const still = isStill ? (textOf(paths.processes) ?? '') : undefined;
  // For every CPU QEMU lists the features that it does not emulate.
  complaint = complaint
    .split('\n')
    .filter((line) => !line.includes(': warning: '))
    .join('\n');
  return { status, complaint, hasStarted: read > 0, isTooLate, still, xml };
}
