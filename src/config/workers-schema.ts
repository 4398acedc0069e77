import { availableParallelism } from "node:os";
import { z } from "zod";

/** More than any machine has cores for; a larger number is a mistake. */
const MAX_WORKERS = 256;

/** How many processes serve; `auto` is what the machine has when the configuration is read. */
export const workers: z.ZodType<number> = z
  .union([z.int().min(1).max(MAX_WORKERS), z.literal("auto").transform(() => availableParallelism())])
  .default(1)
  .describe("Processes that serve clients, one per core; `auto`: as many as there are cores.")
  .meta({ value: "number|auto" });
