/** Prints rows of figures under their title, columns as wide as they need; the first column is text. */
export function printTable(title: string, rows: readonly Readonly<Record<string, string | number>>[]): void {
  const [first] = rows;
  if (first === undefined) return;
  const names = Object.keys(first);
  const cells = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? "")))];
  const widths = names.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? "").length)));
  const lines = cells.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))),
  );
  console.log(`\n${title}\n${lines.map((line) => `  ${line.join("  ")}`).join("\n")}\n`);
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
