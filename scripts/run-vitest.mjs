// Runs vitest, and returns the content of its report.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { setPriority } from 'node:os';
import { root } from './steps.mjs';

const reports = `${root}.cache/tests`;

// Undefined if there is no report, or only a part of it.
function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * `name`: the report's name. `node`: the binary that runs vitest and its tests. `nice`: how far
 * other processes come first, from 0 to 19.
 */
export async function runVitest(name, args, { node = process.execPath, env = process.env, nice = 0 } = {}) {
  mkdirSync(reports, { recursive: true });
  const path = `${reports}/${name}.json`;
  rmSync(path, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${path}`];
  const command = ['node_modules/vitest/vitest.mjs', 'run', ...reporters, ...args];
  const vitest = spawn(node, command, { cwd: root, stdio: 'inherit', env });
  if (nice > 0) setPriority(vitest.pid, nice);
  const [status, signal] = await once(vitest, 'exit');
  const report = readReport(path);
  if (!report) {
    return {
      passed: 0,
      failed: 1,
      skipped: 0,
      failures: [`vitest ended with ${status ?? signal} and without its report ${path}`],
    };
  }
  const { numPassedTests, numFailedTests, numPendingTests, testResults } = report;
  const failures = [];
  for (const { name: file, message, assertionResults } of testResults) {
    if (message) failures.push(`${file}: ${message}`);
    for (const test of assertionResults) {
      if (test.status === 'failed') failures.push(`${test.fullName}\n${test.failureMessages.join('\n')}`);
    }
  }
  return {
    passed: numPassedTests,
    // A file that could not be loaded has no failed test, but it has failed.
    failed: Math.max(numFailedTests, status === 0 ? 0 : 1),
    skipped: numPendingTests,
    failures,
  };
}
