import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { commandLine } from "../../test/support/command-line.ts";
import { REFUSING_URL, startFake } from "../../test/support/fake-upstream.ts";
import { testConfig, testPool } from "../../test/support/test-config.ts";
import { runGateway, startGateway } from "../../test/support/test-gateway.ts";
import { run } from "./program.ts";

const evenkeel = commandLine(run);

const endpoints = (args: readonly string[], environment: Record<string, string> = {}) =>
  evenkeel(["endpoints", ...args], { environment });

describe("evenkeel endpoints", () => {
  it("shows, drains, weighs, adds and removes endpoints of a running balancer", async () => {
    const [e1, e2] = [await startFake(), await startFake()];
    const gateway = await startGateway([e1]);
    const at = ["--admin", gateway.admin];
    expect(await endpoints(at)).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^default {2}e1 +ready +1 +0 +0 {2}http/m),
    });
    expect((await endpoints(["drain", "e1", ...at])).output).toBe("e1 is ready, draining, weight 1, 0 requests\n");
    expect((await endpoints(["undrain", "e1", ...at])).output).toBe("e1 is ready, weight 1, 0 requests\n");
    expect((await endpoints(["weight", "e1", "0.5", ...at])).output).toContain("weight 0.5");
    const { host } = new URL(e2.url);
    expect((await endpoints(["add", e2.url, ...at])).output).toContain(`${host} is unknown`);
    expect((await endpoints(["add", `${e2.url}/x`, "--id", "x", ...at])).output).toContain("x is unknown");
    expect((await endpoints(["remove", host, ...at])).output).toBe(`${host} is removed; 0 requests still run there\n`);
    const { output } = await endpoints(["--json", ...at]);
    expect(JSON.parse(output)).toMatchObject({ pools: [{ endpoints: [{ id: "e1", weight: 0.5 }, { id: "x" }] }] });
  });

  it("asks which pool is meant where there are several", async () => {
    const pools = [testPool([REFUSING_URL]), { ...testPool([REFUSING_URL]), name: "other", models: ["n"] }];
    const { admin } = await runGateway(testConfig([], { pools }));
    expect(await endpoints(["drain", "e1", "--admin", admin])).toMatchObject({
      code: 1,
      errors: "error: --pool expects one of default, other\n",
    });
    expect(await endpoints(["drain", "e1", "--pool", "other", "--admin", admin])).toMatchObject({ code: 0 });
  });

  it("shows the key in its environment", async () => {
    const adminKeys = [{ id: "ops", sha256: createHash("sha256").update("secret").digest() }];
    const { admin } = await runGateway(testConfig([REFUSING_URL], { adminKeys }));
    expect(await endpoints(["--admin", admin])).toMatchObject({
      code: 1,
      errors: "error: the balancer asks for an admin key; set EVENKEEL_ADMIN_KEY\n",
    });
    expect((await endpoints(["--admin", admin], { EVENKEEL_ADMIN_KEY: "secret" })).code).toBe(0);
  });

  it.each([
    [["drain"], /drain expects an endpoint/],
    [["explode", "e1"], /no action explode; there are list, add, remove, drain, undrain, weight/],
    [["weight", "e1"], /weight expects an endpoint and a number/],
    [["weight", "e1", "much"], /weight expects an endpoint and a number/],
    [["add", "nowhere"], /add expects a URL/],
    [["drain", "e9"], /no endpoint e9 in pool default/],
  ])("says what is wrong with %j", async (args, message) => {
    const { admin } = await runGateway(testConfig([REFUSING_URL]));
    const { code, errors } = await endpoints([...args, "--admin", admin]);
    expect(code).toBe(1);
    expect(errors).toMatch(message);
  });

  it("says so where no balancer answers", async () => {
    const { code, errors } = await endpoints(["--admin", REFUSING_URL]);
    expect(code).toBe(1);
    expect(errors).toMatch(/no balancer answers on http:\/\/127\.0\.0\.1:1/);
    expect((await endpoints(["--admin", "here"])).errors).toMatch(/--admin expects a URL/);
  });
});
