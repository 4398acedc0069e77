/** The number that an option is given. @throws when it is not above 0; the message names the option. */
export function positive(option: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${option} ${text}: expected a number above 0`);
  return value;
}
