import { describe, expect, it } from "vitest";
import { parseFleet } from "./fleet-spec.ts";
import { policySetup } from "./policy-setup.ts";

const { engines } = parseFleet("llama8b-h100,llama8b-a100");

describe("policySetup", () => {
  it("leaves our own policies to their defaults", () => {
    expect(policySetup("least_delay", engines)).toEqual({ policy: "least_delay" });
  });

  it("tells peers how fast engines are and what a step takes, and lets their queues wait for ever", () => {
    const setup = policySetup("dynamo_queue_1_fcfs", engines);
    expect(setup).toMatchObject({
      policy: { name: "dynamo_queue_1_fcfs" },
      policyOptions: { speeds: { "h100-1": 1 }, batchTokens: { "h100-1": 8192, "a100-1": 2048 } },
      whenFull: "hold",
      holding: { maxRequests: Number.POSITIVE_INFINITY, maxWaitMs: Number.POSITIVE_INFINITY },
    });
    const { speeds } = setup.policyOptions as { readonly speeds: Record<string, number> };
    expect(speeds["a100-1"]).toBeGreaterThan(0.2);
    expect(speeds["a100-1"]).toBeLessThan(0.8);
  });

  it("lets peers that do not hold refuse", () => {
    expect(policySetup("lmetric", engines).whenFull).toBe("refuse");
  });
});
