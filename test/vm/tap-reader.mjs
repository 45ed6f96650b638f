// TapReader: reads tests from the output of node --test, as they come.

// Except those that node --test adds itself.
const NOTE = /^\s*# (?!Subtest: |(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$)(.*)$/;
const RESULT = /^(\s*)(not )?ok \d+ - (.*?)( # (SKIP|TODO).*)?$/;

export class TapReader {
  #onTest;
  #onNote;
  #text = '';
  // The test whose YAML block is being read.
  #open;
  count = 0;
  failed = 0;
  /** Lines that are not TAP, such as the output of failed tests. */
  rest = '';

  /**
   * `onTest`: called with each test, but not with suites: { name, isOk, isSkipped, seconds, details
   * }. `onNote`: called with each line of diagnostics.
   */
  constructor({ onTest, onNote }) {
    this.#onTest = onTest;
    this.#onNote = onNote;
  }

  add(text) {
    const lines = (this.#text + text).split('\n');
    this.#text = lines.pop();
    for (const line of lines) this.#line(line);
  }

  end() {
    if (this.#text !== '') this.#line(this.#text);
    this.#text = '';
    this.#close();
  }

  #line(line) {
    const result = RESULT.exec(line);
    if (result) {
      this.#close();
      const [, indent, not, name, directive] = result;
      this.#open = {
        indent: indent.length,
        name,
        isOk: not === undefined,
        isSkipped: directive !== undefined,
        details: [],
      };
    } else if (this.#open && line.startsWith(' '.repeat(this.#open.indent + 2))) {
      const detail = line.slice(this.#open.indent + 2);
      this.#open.details.push(detail);
      if (detail === '...') this.#close();
    } else if (NOTE.test(line)) {
      this.#close();
      this.#onNote(NOTE.exec(line)[1]);
    } else if (!/^\s*(#|TAP |\d+\.\.\d+)/.test(line) && line.trim() !== '') {
      this.rest = `${this.rest}${line}\n`.slice(-2000);
    }
  }

  #close() {
    const test = this.#open;
    this.#open = undefined;
    if (!test || test.details.some((line) => /^type: 'suite'/.test(line))) return;
    this.count++;
    if (!test.isOk) this.failed++;
    const details = test.details.join('\n');
    this.#onTest({
      ...test,
      details,
      seconds: Number(/^duration_ms: ([\d.]+)$/m.exec(details)?.[1] ?? 0) / 1000,
    });
  }
}
