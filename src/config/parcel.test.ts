import { deserialize, serialize } from "node:v8";
import { describe, expect, it } from "vitest";
import { readConfig } from "./load-config.ts";
import { type Parcel, pack, unpack } from "./parcel.ts";
import { Secret } from "./secret.ts";

/** As Node's channel to another process carries it. */
function sent<Value>(parcel: Parcel<Value>): Parcel<Value> {
  return deserialize(serialize(parcel));
}

describe("a parcel", () => {
  it("carries a whole configuration, secrets and hashes included", () => {
    const text = JSON.stringify({
      endpoints: [{ url: "a:1", apiKey: "sesame" }],
      models: ["m"],
      aliases: { fast: "m" },
      keys: [{ id: "k", hash: `sha256:${"ab".repeat(32)}` }],
      timeouts: { idle: "off" },
    });
    const read = readConfig({ file: { name: "f", text } });
    if (!read.ok) throw new Error(JSON.stringify(read.problems));
    const arrived = unpack(sent(pack(read.value)));
    expect(arrived).toEqual(read.value);
    expect(arrived.pools[0]?.endpoints[0]?.apiKey?.reveal()).toBe("sesame");
    expect(arrived.keys[0]?.sha256.equals(Buffer.alloc(32, 0xab))).toBe(true);
    expect(arrived.pools[0]?.aliases.get("fast")).toBe("m");
    expect("idleMs" in arrived.timeouts).toBe(true);
  });

  it("leaves what was packed as it is", () => {
    const value = { key: new Secret("s"), list: [new Secret("t")] };
    pack(value);
    expect(value.key.reveal() + value.list[0]?.reveal()).toBe("st");
  });
});
