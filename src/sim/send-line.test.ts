import { expect, it } from "vitest";
import type { Job } from "./job.ts";
import { SendLine } from "./send-line.ts";

it("lets requests arrive in the order of sending, each after the delay", () => {
  const line = new SendLine(2);
  const jobs = Array.from({ length: 5_000 }, (_, i) => ({ toldTokens: i }) as Job);
  const arrived: Job[] = [];
  jobs.forEach((job, i) => {
    line.add(job, i);
    if (i < 2) return;
    expect(line.firstAtMs).toBe(i);
    arrived.push(line.take() as Job);
  });
  expect(line.firstAtMs).toBe(5_000);
  for (let job = line.take(); job !== undefined; job = line.take()) arrived.push(job);
  expect(arrived).toEqual(jobs);
  expect(line.firstAtMs).toBe(Number.POSITIVE_INFINITY);
});
