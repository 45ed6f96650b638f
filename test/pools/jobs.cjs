// Jobs for pools of Workers. Knows nothing of numalign.
const { readFileSync, readlinkSync } = require('node:fs');

// By its first line of code, from what the kernel says.
const tid = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
const maskNow = () => /Cpus_allowed_list:\s*(.*)/.exec(readFileSync('/proc/thread-self/status', 'utf8'))[1];
const born = maskNow();

function where() {
  return { tid, born, now: maskNow() };
}

module.exports = (job) => (job === 'end' ? process.exit(1) : where());
module.exports.where = where;

// workerpool has its Workers say what they can do.
if (process.env.NUMALIGN_TEST_POOL === 'workerpool') require('workerpool').worker({ where });
