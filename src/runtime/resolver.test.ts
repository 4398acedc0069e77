import { isIP } from "node:net";
import { expect, it } from "vitest";
import { lookupBy, systemResolver } from "./resolver.ts";

it("resolves as the system does, to addresses of one family", async () => {
  const addresses = await systemResolver.resolve("localhost");
  expect(addresses.length).toBeGreaterThan(0);
  expect(new Set(addresses.map(isIP)).size).toBe(1);
});

it("rejects a name that there is none of", async () => {
  await expect(systemResolver.resolve("no-such-host.invalid")).rejects.toThrow();
});

it("gives a socket that wants one address the first", async () => {
  const lookup = lookupBy(async () => ["::1", "10.0.0.1"]);
  const [address, family] = await new Promise<unknown[]>((resolve) =>
    lookup("h", {}, (_error, ...found) => resolve(found)),
  );
  expect([address, family]).toEqual(["::1", 6]);
});
