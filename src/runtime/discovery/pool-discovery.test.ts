import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../../test/support/until.ts";
import { seededRandom } from "../../core/index.ts";
import { monotonicClock } from "../clock.ts";
import { createLog } from "../log.ts";
import { PoolDiscovery } from "./pool-discovery.ts";

const name = (host: string, intervalMs = 5) =>
  ({ kind: "dns", host, port: 1, scheme: "http", basePath: "", intervalMs }) as const;

class Scene {
  readonly addresses: Record<string, readonly string[]> = { a: ["10.0.0.1"], b: ["10.0.0.2"] };
  asked: Record<string, number> = {};
  changes = 0;
  readonly discovery: PoolDiscovery = new PoolDiscovery(
    {
      clock: monotonicClock,
      random: seededRandom(1),
      log: createLog({ level: "silent", format: "json" }),
      resolver: {
        resolve: async (host) => {
          this.asked[host] = (this.asked[host] ?? 0) + 1;
          return this.addresses[host] ?? [];
        },
      },
    },
    () => this.changes++,
  );

  constructor() {
    onTestFinished(() => this.discovery.stop());
  }

  get ids(): readonly string[] {
    return this.discovery.endpoints.map(({ id }) => id);
  }

  async looks(host: string, times = 2): Promise<void> {
    const before = this.asked[host] ?? 0;
    await until(() => (this.asked[host] ?? 0) >= before + times);
  }
}

describe("PoolDiscovery", () => {
  it("puts together what its sources find, and tells only of changes", async () => {
    const scene = new Scene();
    scene.discovery.follow([name("a"), name("b")]);
    expect(scene.asked).toEqual({});
    scene.discovery.start();
    await until(() => scene.changes === 2);
    expect(scene.ids).toEqual(["10.0.0.1:1", "10.0.0.2:1"]);
    await scene.looks("a");
    expect(scene.changes).toBe(2);
    scene.addresses.a = ["10.0.0.1", "10.0.0.3"];
    await until(() => scene.changes === 3);
    expect(scene.ids).toEqual(["10.0.0.1:1", "10.0.0.3:1", "10.0.0.2:1"]);
  });

  it("keeps what was found in a place though it is looked at in another pace", async () => {
    const scene = new Scene();
    scene.discovery.follow([name("a")]);
    scene.discovery.start();
    await until(() => scene.changes === 1);
    scene.discovery.follow([name("a", 1), name("b")]);
    expect(scene.ids).toEqual(["10.0.0.1:1"]);
    await until(() => scene.changes === 2);
    expect(scene.ids).toEqual(["10.0.0.1:1", "10.0.0.2:1"]);
  });

  it("forgets a place that is not looked at any more, and asks nothing there", async () => {
    const scene = new Scene();
    scene.discovery.follow([name("a"), name("b")]);
    scene.discovery.start();
    await until(() => scene.changes === 2);
    scene.discovery.follow([name("b")]);
    expect(scene.ids).toEqual(["10.0.0.2:1"]);
    const asked = scene.asked.a;
    await scene.looks("b", 3);
    expect(scene.asked.a).toBe(asked);
  });

  it("keeps what it found when it stops, and finds nothing more", async () => {
    const scene = new Scene();
    scene.discovery.follow([name("a")]);
    scene.discovery.start();
    await until(() => scene.changes === 1);
    await scene.discovery.stop();
    expect(scene.ids).toEqual(["10.0.0.1:1"]);
    const asked = scene.asked.a;
    scene.addresses.a = ["10.0.0.9"];
    scene.discovery.follow([name("a", 1), name("b")]);
    expect([scene.ids, scene.asked.a]).toEqual([["10.0.0.1:1"], asked]);
  });
});
