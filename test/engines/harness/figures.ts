import { textTable } from "../../../bench/support/table.ts";

/** Prints rows of figures under their title; the keys of the first row are the head. */
export function printTable(title: string, rows: readonly Readonly<Record<string, string | number>>[]): void {
  const names = Object.keys(rows[0] ?? {});
  const cells = rows.map((row) => names.map((name) => String(row[name] ?? "")));
  console.log(`\n${title}\n\n${textTable([names, ...cells])}\n`);
}
