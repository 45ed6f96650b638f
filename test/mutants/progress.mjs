// What is judged so far, as a reporter of Stryker's: its own counts the mutants outside the sample.
import { relative } from 'node:path';

export const KILLED = ['Killed', 'Timeout'];
export const LIVED = ['Survived', 'NoCoverage'];

const EVERY = 20;

class Judged {
  #judged = 0;
  #alive = 0;

  onMutantTested({ status, fileName, location: { start }, replacement }) {
    const lives = LIVED.includes(status);
    if (!lives && !KILLED.includes(status)) return;
    this.#judged += 1;
    if (lives) this.#alive += 1;
    if (lives || status === 'Timeout') {
      const at = `${relative(process.cwd(), fileName)}:${start.line}:${start.column}`;
      console.log(`${lives ? 'lives' : 'hangs'}: ${at}  =>  ${replacement.replace(/\s+/g, ' ')}`);
    }
    if (lives || this.#judged % EVERY === 0) console.log(`${this.#judged} judged, ${this.#alive} live`);
  }
}

export const strykerPlugins = [{ kind: 'Reporter', name: 'judged', injectableClass: Judged }];
