// Mutation tests: small changes are put into a copy of the package, one at a time; which of them do
// its tests let through?
//
//   npm run test:mutants -- [--sample PERCENT] [--seed S] [--vm] FOLDER|FILE …
//
// Folders and files are those of lib/, native/core and packages/kubernetes/lib/nri. --vm: what
// lives is judged by the tests in virtual machines too, where there are any of the folder.
import { parseArgs } from 'node:util';
import { fail } from '../../scripts/steps.mjs';
import { freshSeed } from '../torture/options.mjs';
import { judgeCpp } from './cpp.mjs';
import { judgeTypeScript } from './typescript.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(freshSeed()) },
    vm: { type: 'boolean', default: false },
  },
});
const sample = { percent: Number.parseFloat(values.sample), seed: Number(values.seed) };
if (!(sample.percent > 0 && sample.percent <= 100))
  fail(`--sample is a percentage, 0.1 to 100, not ${values.sample}`);
if (positionals.length === 0) fail('say which folders or files: npm run test:mutants -- lib/decision');

const oneLine = (text) => text.replace(/\s+/g, ' ').trim();
const shorten = (text) => (text.length > 100 ? `${text.slice(0, 97)}…` : text);

const scores = [];
for (const given of positionals) {
  const path = given.replace(/\/+$/, '');
  const isCpp = path.startsWith('native/');
  const { all, judged, survivors } = isCpp
    ? judgeCpp(path, sample)
    : await judgeTypeScript(path, sample, values.vm);
  console.log(`\nsurvivors of ${path}:`);
  for (const { at, before, after, note } of survivors) {
    console.log(
      `${at}  ${shorten(oneLine(before))}  =>  ${shorten(oneLine(after))}${note ? `  (${note})` : ''}`,
    );
  }
  const killed = judged - survivors.length;
  const score = judged === 0 ? '-' : ((100 * killed) / judged).toFixed(1);
  scores.push(
    `${path}: ${score} % killed, ${killed} of ${judged} (${all} mutants in all, seed ${sample.seed})`,
  );
}
console.log(`\n${scores.join('\n')}`);
