import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { simulateCommand } from "./command.ts";

it("docs/simulator.md lists exactly the options there are", () => {
  const page = readFileSync(new URL("../../../docs/simulator.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| `(--[\w-]+)/gm)].map(([, flag]) => flag);
  const terminal = {
    environment: {},
    columns: 80,
    write: () => {},
    writeError: () => {},
    readInput: async () => "",
    untilStopped: async () => {},
    onHangUp: () => {},
  };
  const { options } = simulateCommand(terminal, () => {});
  expect(listed).toEqual(options.map(({ long }) => long));
});
