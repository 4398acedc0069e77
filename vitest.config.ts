import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "bench/**/*.test.ts"],
    // Real engines are installed and started by `npm run test:engines` and `npm run test:vllm`.
    exclude: ["test/engines/**", "node_modules/**", "dist/**"],
    testTimeout: 20_000,
    coverage: {
      provider: "v8",
      include: ["src/core/**/*.ts", "src/admission/**/*.ts"],
      exclude: ["src/**/*.test.ts"],
      thresholds: { lines: 100 },
    },
  },
});
