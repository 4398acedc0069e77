import { defineConfig } from "vitest/config";

/** Real engines: each test file starts its own, so one file runs at a time, and waits are long. */
export default defineConfig({
  test: {
    include: ["test/engines/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    // The first run installs the engines; vLLM takes many minutes for it.
    hookTimeout: 45 * 60_000,
    // Waits on states that a real engine reaches in its own time. A bound for a hang, not a claim about speed.
    expect: { poll: { timeout: 60_000, interval: 50 } },
    // The figures are part of the result.
    disableConsoleIntercept: true,
  },
});
