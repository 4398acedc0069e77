import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../../test/support/until.ts";
import type { EndpointConfig } from "../../config/index.ts";
import { seededRandom } from "../../core/index.ts";
import { monotonicClock } from "../clock.ts";
import { createLog } from "../log.ts";
import { DnsSource } from "./dns-source.ts";

type Answer = readonly string[] | Error;

/** A source that looks every 5 ms at a name for which the test answers. */
function look(name: Partial<ConstructorParameters<typeof DnsSource>[0]> = {}): {
  found: (readonly EndpointConfig[])[];
  asked: string[];
  answer: Answer;
  source: DnsSource;
} {
  const scene = { found: [] as (readonly EndpointConfig[])[], asked: [] as string[], answer: [] as Answer };
  const resolver = {
    async resolve(host: string): Promise<readonly string[]> {
      scene.asked.push(host);
      if (scene.answer instanceof Error) throw scene.answer;
      return scene.answer;
    },
  };
  const surroundings = {
    clock: monotonicClock,
    random: seededRandom(1),
    log: createLog({ level: "silent", format: "json" }),
    resolver,
  };
  const config = {
    kind: "dns",
    host: "vllm",
    port: 8000,
    scheme: "http",
    basePath: "",
    intervalMs: 5,
    ...name,
  } as const;
  const source = new DnsSource(config, surroundings, (endpoints) => scene.found.push(endpoints));
  onTestFinished(() => source.stop());
  return Object.assign(scene, { source });
}

describe("DnsSource", () => {
  it("finds an endpoint at each address, whatever order they come in", async () => {
    const scene = look();
    scene.answer = ["10.0.0.2", "10.0.0.1", "fd00::1"];
    scene.source.start();
    await until(() => scene.found.length > 0);
    expect(scene.found[0]?.map(({ id, url }) => [id, url])).toEqual([
      ["10.0.0.1:8000", "http://10.0.0.1:8000"],
      ["10.0.0.2:8000", "http://10.0.0.2:8000"],
      ["[fd00::1]:8000", "http://[fd00::1]:8000"],
    ]);
    expect(scene.asked[0]).toBe("vllm");
  });

  it("expects the name in the certificate of an https endpoint", async () => {
    const scene = look({ scheme: "https", basePath: "/engine" });
    scene.answer = ["10.0.0.1"];
    scene.source.start();
    await until(() => scene.found.length > 0);
    expect(scene.found[0]).toMatchObject([
      { url: "https://10.0.0.1:8000/engine", tls: { serverName: "vllm", isVerified: true } },
    ]);
  });

  it.each<[string, Answer]>([
    ["fails", Object.assign(new Error("down"), { code: "ESERVFAIL" })],
    ["finds no address", []],
  ])("says nothing while a look-up %s, and goes on looking", async (_, answer) => {
    const scene = look();
    scene.answer = answer;
    scene.source.start();
    await until(() => scene.asked.length > 2);
    expect(scene.found).toHaveLength(0);
    scene.answer = ["10.0.0.1"];
    await until(() => scene.found.length > 0);
  });

  it("finds nothing more once it is stopped, though a look-up may be under way", async () => {
    const scene = look();
    scene.answer = ["10.0.0.1"];
    scene.source.start();
    await until(() => scene.asked.length > 0);
    await scene.source.stop();
    const { length } = scene.found;
    const asked = scene.asked.length;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(scene.found).toHaveLength(length);
    expect(scene.asked).toHaveLength(asked);
  });
});
