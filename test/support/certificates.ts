import { generateKeyPairSync, type KeyObject, type KeyPairKeyObjectResult, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";

/** A certificate with its key, both in PEM. */
export interface Certified {
  readonly cert: string;
  readonly key: string;
}

/** An authority that lives as long as a test. */
export interface TestAuthority {
  /** Its own certificate, in PEM: whoever trusts it trusts what it issues. */
  readonly cert: string;
  /**
   * @param names Host names and addresses the certificate is good for.
   * @param days Until it expires; negative: it has.
   * @param pair Of the holder; absent: a new one.
   */
  issue(names: readonly string[], days?: number, pair?: KeyPairKeyObjectResult): Certified;
}

/** Made anew by each run, so that no fixture expires and no key lies about. */
export function createAuthority(name = "test authority"): TestAuthority {
  const own = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const certify = (subject: string, publicKey: KeyObject, extensions: Buffer[], days: number): string => {
    const body = certificateBody(name, subject, publicKey, extensions, days);
    const signature = sign("sha256", body, own.privateKey);
    return pem(sequence(body, ECDSA_WITH_SHA256, bits(signature)));
  };
  return {
    cert: certify(name, own.publicKey, [extension(BASIC_CONSTRAINTS, sequence(TRUE))], 1),
    issue(names, days = 1, pair = generateKeyPairSync("ec", { namedCurve: "P-256" })) {
      const extensions = [extension(ALTERNATIVE_NAMES, sequence(...names.map(alternativeName)))];
      const cert = certify(names[0] ?? "client", pair.publicKey, names.length > 0 ? extensions : [], days);
      return { cert, key: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
    },
  };
}

/** The part of a certificate that is signed (RFC 5280, 4.1.2). */
function certificateBody(
  issuer: string,
  subject: string,
  publicKey: KeyObject,
  extensions: readonly Buffer[],
  days: number,
): Buffer {
  const nowMs = Date.now();
  const [from, to] = [Math.min(0, days) - 1, days].map((day) => generalizedTime(new Date(nowMs + day * DAY_MS)));
  return sequence(
    tagged(0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    commonName(issuer),
    sequence(from as Buffer, to as Buffer),
    commonName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    ...(extensions.length > 0 ? [tagged(3, sequence(...extensions))] : []),
  );
}

const DAY_MS = 86_400_000;

/** DER: a tag, the length of what follows, and that. */
function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const long = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...long]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

function tagged(number: number, content: Buffer): Buffer {
  return tlv(0xa0 + number, content);
}

function bits(content: Buffer): Buffer {
  return tlv(0x03, Buffer.concat([Buffer.from([0]), content]));
}

function objectId(hex: string): Buffer {
  return tlv(0x06, Buffer.from(hex, "hex"));
}

function generalizedTime(date: Date): Buffer {
  return tlv(0x18, Buffer.from(`${date.toISOString().slice(0, 19).replace(/\D/g, "")}Z`));
}

function commonName(name: string): Buffer {
  return sequence(tlv(0x31, sequence(objectId("550403"), tlv(0x0c, Buffer.from(name)))));
}

function extension(id: Buffer, value: Buffer): Buffer {
  return sequence(id, TRUE, tlv(0x04, value));
}

function alternativeName(name: string): Buffer {
  return isIP(name) === 4 ? tlv(0x87, Buffer.from(name.split(".").map(Number))) : tlv(0x82, Buffer.from(name));
}

function pem(der: Buffer): string {
  return `-----BEGIN CERTIFICATE-----\n${der.toString("base64").replace(/.{1,64}/g, "$&\n")}-----END CERTIFICATE-----\n`;
}

const TRUE = tlv(0x01, Buffer.from([0xff]));
const ECDSA_WITH_SHA256 = sequence(objectId("2a8648ce3d040302"));
const BASIC_CONSTRAINTS = objectId("551d13");
const ALTERNATIVE_NAMES = objectId("551d11");
