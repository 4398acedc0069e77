import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { Secret } from "./secret.ts";

/** Two texts that are used together. */
export interface CertificatePair {
  /** A certificate in PEM, with its chain behind it. */
  readonly cert: string;
  readonly key: Secret;
}

/** What is wrong with a pair: with which of the two, and what it should be. Never quotes either. */
export interface PairProblem {
  readonly setting: "cert" | "key";
  readonly expected: string;
}

/** The certificates of a PEM text, in its order; undefined: there are none, or one that cannot be read. */
export function certificatesIn(text: string): readonly X509Certificate[] | undefined {
  const blocks = text.match(CERTIFICATE) ?? [];
  if (blocks.length === 0 || blocks.length !== text.split(BEGINNING).length - 1) return undefined;
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

/** Whether a text is one private key that needs no passphrase. */
export function isPrivateKey(text: string): boolean {
  return privateKeyIn(text) !== undefined;
}

/** Whatever would fail when the pair is used. Undefined: nothing. */
export function pairProblem({ cert, key }: CertificatePair): PairProblem | undefined {
  const own = certificatesIn(cert)?.[0];
  const privateKey = privateKeyIn(key.reveal());
  if (own === undefined || privateKey === undefined) return undefined;
  if (!own.checkPrivateKey(privateKey)) {
    return { setting: "key", expected: "the key of the certificate in `cert`, of the first one if there are several" };
  }
  try {
    createSecureContext({ cert, key: key.reveal() });
    return undefined;
  } catch (error) {
    // What OpenSSL does not take although it is one: too short a key, too weak a signature.
    return { setting: "cert", expected: `a certificate that is strong enough for TLS (${codeOf(error)})` };
  }
}

const BEGINNING = /-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/;
const CERTIFICATE = /-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----[\s\S]*?-----END \1-----/g;

function privateKeyIn(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text);
  } catch {
    return undefined;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
