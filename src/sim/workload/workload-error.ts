/** A trace or a specification that cannot be read; the message says where and what was expected. */
export class WorkloadError extends Error {
  override readonly name = "WorkloadError";
}

/** Longer values are cut in messages. */
const SHOWN_CHARACTERS = 60;

/** A value as messages show it. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}...`;
}
