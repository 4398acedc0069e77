import fc from "fast-check";
import { ENGINE_KINDS, type EngineKind } from "../../src/core/index.ts";
import { engineAdapters } from "../../src/signals/index.ts";
import { engineTexts } from "../../test/conformance/engine-texts.ts";
import { applied, type Edited, editedText } from "./edits.ts";
import type { FuzzTarget } from "./target.ts";

interface EnginePages {
  readonly kind: EngineKind;
  readonly metrics: Edited;
  readonly health: Edited;
  readonly status: number;
}

const TEXTS = Object.values(engineTexts);
const WORDS = [
  ...[
    "\n",
    "{",
    "}",
    '"',
    "\\",
    "\\n",
    "=",
    ",",
    " ",
    "NaN",
    "+Inf",
    "-1",
    "1e400",
    "1e308",
    "9".repeat(400),
    "# TYPE x",
  ],
  ...['{engine="1"}', 'engine="0",', "_total", "_bucket", "vllm:", "0x10", "1_000", "\u0000", "[", "]", ":", "null"],
];

/** Whatever an engine's pages say, it is read as numbers that can be meant, or as nothing. */
export const metrics: FuzzTarget = {
  name: "engine metrics",
  inputs: "metrics, health and slot pages of all engines, changed",
  open: async () => ({
    arbitrary: fc.record({
      kind: fc.constantFrom(...ENGINE_KINDS),
      metrics: editedText(
        TEXTS.map((texts) => texts.metrics),
        WORDS,
        6,
      ),
      health: editedText(
        TEXTS.flatMap(({ healthy, loading }) => [healthy, loading?.body ?? "[]"]),
        WORDS,
      ),
      status: fc.integer({ min: 100, max: 999 }),
    }),
    check: (input) => checkPages(input as EnginePages),
    close: async () => {},
  }),
};

/** Nothing that is read here has a larger value in any engine that exists, and none of it can be below 0. */
function checkPages({ kind, metrics: page, health, status }: EnginePages): void {
  const adapter = engineAdapters[kind];
  const startMs = performance.now();
  const signals = adapter.readSignals(applied(page), 42);
  for (const [name, value] of Object.entries(signals)) {
    if (value !== undefined && !(Number.isFinite(value) && value >= 0)) throw new Error(`${name} is read as ${value}`);
  }
  if ((signals.kvUsedRatio ?? 0) > 1) throw new Error(`more of the KV cache is used than there is`);
  const { kind: reading } = adapter.readHealth(status, applied(health));
  if (reading === "ok" && (status < 200 || status > 299)) throw new Error(`a status of ${status} counts as well`);
  const slots = adapter.slots?.readSlots(applied(health));
  if (slots !== undefined && !(Number.isFinite(slots) && slots >= 0)) throw new Error(`slots are read as ${slots}`);
  const tookMs = performance.now() - startMs;
  if (tookMs > SLOW_MS) throw new Error(`reading took ${Math.round(tookMs)} ms`);
}

/** Pages here are below 100 KB and take well under a millisecond; the rest is for a machine that does other things. */
const SLOW_MS = 500;
