/**
 * A value that must not be seen. It prints and serialises as a placeholder, and inspection does not show
 * private fields, so a log line or a dump of the configuration cannot carry it by accident.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself, for the one place that sends it. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }
}

/** What stands in for a value that is not shown. */
export const HIDDEN = "(hidden)";
