// The program with the command `run` alone: it starts sooner without the code of the others.
import { addRun } from './commands/run.js';
import { type Commands, programOf, runIn } from './program-frame.js';

export const RUN: Commands = { run: [addRun, 'run a program on exclusive CPUs until it ends'] };

export const runProgram = (argv: readonly string[]): Promise<void> => runIn(programOf(RUN), argv);
