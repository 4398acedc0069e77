import type { LookupAddress } from "node:dns";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { HostAddresses } from "./host-addresses.ts";

/** A name that stands for what the test says, on a clock that the test moves. */
class Scene {
  nowMs = 0;
  answer: readonly string[] | Error = ["10.0.0.1"];
  /** What a look-up waits for. */
  delay: Promise<void> | undefined;
  asked = 0;
  moves = 0;
  readonly addresses: HostAddresses = new HostAddresses(
    "engine",
    {
      resolve: async () => {
        this.asked++;
        await this.delay;
        if (this.answer instanceof Error) throw this.answer;
        return this.answer;
      },
    },
    { nowMs: () => this.nowMs },
    () => this.moves++,
  );

  /** As a socket asks. */
  async lookup(): Promise<string[]> {
    const lookup = promisify(this.addresses.lookup) as unknown as (
      host: string,
      options: { all: true },
    ) => Promise<LookupAddress[]>;
    return (await lookup("engine", { all: true })).map(({ address }) => address);
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("HostAddresses", () => {
  it("looks a name up once for all that connect within 5 s", async () => {
    const scene = new Scene();
    expect(await Promise.all([scene.lookup(), scene.lookup()])).toEqual([["10.0.0.1"], ["10.0.0.1"]]);
    scene.nowMs = 4_999;
    await scene.lookup();
    expect(scene.asked).toBe(1);
    scene.answer = ["10.0.0.2"];
    scene.nowMs = 5_000;
    expect(await scene.lookup()).toEqual(["10.0.0.2"]);
    expect(scene.moves).toBe(1);
  });

  it("is kept fresh in passing, and tells when the name stands for other addresses", async () => {
    const scene = new Scene();
    scene.addresses.keepFresh();
    expect(scene.asked).toBe(0);
    await scene.lookup();
    scene.addresses.keepFresh();
    scene.nowMs = 5_000;
    scene.addresses.keepFresh();
    scene.addresses.keepFresh();
    await settled();
    expect(scene.asked).toBe(2);
    expect(scene.moves).toBe(0);
    scene.answer = ["10.0.0.2", "10.0.0.3"];
    scene.nowMs = 10_000;
    scene.addresses.keepFresh();
    await settled();
    expect(scene.moves).toBe(1);
  });

  it("takes the same addresses in another order for the same", async () => {
    const scene = new Scene();
    scene.answer = ["10.0.0.1", "10.0.0.2"];
    await scene.lookup();
    scene.answer = ["10.0.0.2", "10.0.0.1"];
    expect(await scene.addresses.renew()).toBe(false);
    expect(scene.moves).toBe(0);
  });

  it.each([
    ["fails", new Error("SERVFAIL")],
    ["finds nothing", []],
  ])("keeps what it has while a look-up %s", async (_, answer) => {
    const scene = new Scene();
    await scene.lookup();
    scene.answer = answer;
    scene.nowMs = 5_000;
    expect(await scene.lookup()).toEqual(["10.0.0.1"]);
    expect(await scene.addresses.renew()).toBe(false);
    scene.answer = ["10.0.0.2"];
    expect(await scene.addresses.renew()).toBe(true);
    expect(await scene.lookup()).toEqual(["10.0.0.2"]);
  });

  it("goes on with what it has while a look-up hangs, and takes the answer when it comes", async () => {
    const scene = new Scene();
    await scene.lookup();
    scene.nowMs = 5_000;
    let answer: () => void = () => {};
    scene.delay = new Promise((resolve) => {
      answer = resolve;
    });
    scene.answer = ["10.0.0.2"];
    expect(await scene.lookup()).toEqual(["10.0.0.1"]);
    expect(await scene.addresses.renew()).toBe(false);
    expect(scene.asked).toBe(2);
    answer();
    await settled();
    expect(scene.moves).toBe(1);
    expect(await scene.lookup()).toEqual(["10.0.0.2"]);
  });

  it("fails as the look-up does while nothing was found yet", async () => {
    const scene = new Scene();
    scene.answer = Object.assign(new Error("none"), { code: "ENOTFOUND" });
    await expect(scene.lookup()).rejects.toThrow("none");
    scene.answer = [];
    await expect(scene.lookup()).rejects.toThrow("no address of engine");
    scene.answer = ["10.0.0.1"];
    expect(await scene.lookup()).toEqual(["10.0.0.1"]);
  });
});
