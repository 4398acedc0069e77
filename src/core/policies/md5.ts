/** MD5 digest of a text's UTF-8 bytes (RFC 1321), 16 bytes. To spread keys, never to protect anything. */
export function md5(text: string): Uint8Array {
  const message = padded(utf8(text));
  const words = new Uint32Array(16);
  const state = Uint32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  const view = new DataView(message.buffer);
  for (let at = 0; at < message.length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(at + 4 * i, true);
    digestBlock(state, words);
  }
  const digest = new Uint8Array(16);
  const out = new DataView(digest.buffer);
  state.forEach((word, i) => {
    out.setUint32(4 * i, word, true);
  });
  return digest;
}

/** Step constants: the integer part of 2^32 |sin(step)|, steps from 1. */
const SINES = Uint32Array.from({ length: 64 }, (_, step) => Math.floor(2 ** 32 * Math.abs(Math.sin(step + 1))));

/** Left rotations, four to a round, used in turn. */
const ROTATIONS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
] as const;

function digestBlock(state: Uint32Array, words: Uint32Array): void {
  let [a = 0, b = 0, c = 0, d = 0] = state;
  for (let step = 0; step < 64; step++) {
    const round = step >>> 4;
    const { mixed, word } = roundStep(round, step, b, c, d);
    const sum = (a + mixed + (SINES[step] as number) + (words[word] as number)) | 0;
    const rotation = ROTATIONS[round]?.[step & 3] as number;
    [a, d, c, b] = [d, c, b, (b + ((sum << rotation) | (sum >>> (32 - rotation)))) | 0];
  }
  [a, b, c, d].forEach((word, i) => {
    state[i] = (state[i] as number) + word;
  });
}

/** The round's function of three state words, and which message word the step takes. */
function roundStep(round: number, step: number, b: number, c: number, d: number): { mixed: number; word: number } {
  switch (round) {
    case 0:
      return { mixed: (b & c) | (~b & d), word: step };
    case 1:
      return { mixed: (d & b) | (~d & c), word: (5 * step + 1) % 16 };
    case 2:
      return { mixed: b ^ c ^ d, word: (3 * step + 5) % 16 };
    default:
      return { mixed: c ^ (b | ~d), word: (7 * step) % 16 };
  }
}

/** The bytes, a one bit, zeros, and the length in bits as 64 bits little-endian, to a multiple of 64 bytes. */
function padded(bytes: readonly number[]): Uint8Array {
  const message = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  message.set(bytes);
  message[bytes.length] = 0x80;
  const view = new DataView(message.buffer);
  view.setUint32(message.length - 8, bytes.length * 8, true);
  view.setUint32(message.length - 4, Math.floor(bytes.length / 2 ** 29), true);
  return message;
}

/** This layer has no TextEncoder. A lone surrogate becomes U+FFFD, as there. */
function utf8(text: string): number[] {
  const bytes: number[] = [];
  for (const character of text) {
    const point = character.codePointAt(0) as number;
    const code = point >= 0xd800 && point <= 0xdfff ? 0xfffd : point;
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), tail(code));
    else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), tail(code >> 6), tail(code));
    else bytes.push(0xf0 | (code >> 18), tail(code >> 12), tail(code >> 6), tail(code));
  }
  return bytes;
}

/** A continuation byte of UTF-8. */
function tail(bits: number): number {
  return 0x80 | (bits & 0x3f);
}
