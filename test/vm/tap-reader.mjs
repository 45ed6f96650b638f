// TapReader: the tests in what node --test prints, as they come.

// Not those that node --test writes itself.
const NOTE = /^\s*# (?!Subtest: |(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$)(.*)$/;
const RESULT = /^(\s*)(not )?ok \d+ - (.*?)( # (SKIP|TODO).*)?$/;

export class TapReader {
  #told;
  #noted;
  #text = '';
  // The test whose block of facts is being read.
  #open;
  count = 0;
  failed = 0;
  /** What is no TAP: output of tests that went wrong, say. */
  rest = '';

  /**
   * `told`: called with each test, suites left out: { name, isOk, isSkipped, seconds, details }.
   * `noted`: called with each line of diagnostics.
   */
  constructor({ told, noted }) {
    this.#told = told;
    this.#noted = noted;
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
      this.#noted(NOTE.exec(line)[1]);
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
    this.#told({
      ...test,
      details,
      seconds: Number(/^duration_ms: ([\d.]+)$/m.exec(details)?.[1] ?? 0) / 1000,
    });
  }
}
