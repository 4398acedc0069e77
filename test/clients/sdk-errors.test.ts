import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startServer } from "../../src/gateway/index.ts";
import { REFUSING_URL } from "../support/fake-upstream.ts";
import { testConfig } from "../support/test-config.ts";
import { until } from "../support/until.ts";
import { type BuiltInTarget, MODEL, startBuiltInTarget } from "./built-in-target.ts";

let target: BuiltInTarget;

beforeAll(async () => {
  target = await startBuiltInTarget({ maxModelLen: 512 });
  return target.close;
});

afterEach(() => target.engine.setFaults([]));

const MESSAGES = [{ role: "user" as const, content: "Sing of keels" }];
const REQUEST = { model: MODEL, messages: MESSAGES, max_tokens: 9 };

function clients(url: string, maxRetries = 0): { openai: OpenAI; anthropic: Anthropic } {
  return {
    openai: new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries }),
    anthropic: new Anthropic({ baseURL: url, apiKey: "none", maxRetries }),
  };
}

/** Either SDK's error for an answer that is none. */
type SdkError = InstanceType<typeof OpenAI.APIError> | InstanceType<typeof Anthropic.APIError>;

/** What a call failed with. */
async function failure(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

describe("an engine that is at its limit (429)", () => {
  it("is a RateLimitError with the time to wait and the request's id", async () => {
    target.engine.setFaults(["status=429,count=2,retry-after=1"]);
    const { openai, anthropic } = clients(target.url);
    const openaiError = await failure(openai.chat.completions.create(REQUEST));
    expect(openaiError).toBeInstanceOf(OpenAI.RateLimitError);
    const anthropicError = await failure(anthropic.messages.create(REQUEST));
    expect(anthropicError).toBeInstanceOf(Anthropic.RateLimitError);
    for (const error of [openaiError, anthropicError] as SdkError[]) {
      expect(error.requestID).toEqual(expect.any(String));
      expect((error.headers as Headers).get("retry-after")).toBe("1");
    }
  });

  it("is tried again by the SDK, which then succeeds", async () => {
    const { openai, anthropic } = clients(target.url, 1);
    target.engine.setFaults(["status=429,count=1,retry-after=1"]);
    expect((await openai.chat.completions.create(REQUEST)).usage?.completion_tokens).toBeGreaterThan(0);
    target.engine.setFaults(["status=429,count=1,retry-after=1"]);
    expect((await anthropic.messages.create(REQUEST)).usage.output_tokens).toBeGreaterThan(0);
  });
});

it("an over-long prompt is a BadRequestError with the engine's own words", async () => {
  const long = { ...REQUEST, messages: [{ role: "user" as const, content: "keel ".repeat(2_000) }] };
  const { openai, anthropic } = clients(target.url, 2);
  const openaiError = await failure(openai.chat.completions.create(long));
  expect(openaiError).toBeInstanceOf(OpenAI.BadRequestError);
  expect(openaiError).toMatchObject({ message: expect.stringContaining("512") });
  const anthropicError = await failure(anthropic.messages.create(long));
  expect(anthropicError).toBeInstanceOf(Anthropic.BadRequestError);
  expect(anthropicError).toMatchObject({ message: expect.stringContaining("512") });
});

describe.each([
  { fault: "error,after=3", what: "the engine tells of an error", says: /engine died/ },
  { fault: "reset,after=3", what: "the engine's connection is reset", says: /connection to the endpoint broke/ },
  { fault: "fin,after=3", what: "the engine closes without an end", says: /connection to the endpoint broke/ },
])("when $what in the middle of a stream", ({ fault, says }) => {
  it("the OpenAI client's loop throws an APIError that says so", async () => {
    target.engine.setFaults([`${fault},count=1`]);
    const chunks: unknown[] = [];
    const read = async (): Promise<void> => {
      const stream = await clients(target.url).openai.chat.completions.create({ ...REQUEST, stream: true });
      for await (const chunk of stream) chunks.push(chunk);
    };
    const error = await failure(read());
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ message: expect.stringMatching(says) });
    expect(chunks.length).toBeGreaterThan(0);
  });

  it("the Anthropic client's message fails with an APIError that says so", async () => {
    target.engine.setFaults([`${fault},count=1`]);
    const stream = clients(target.url).anthropic.messages.stream(REQUEST);
    const error = await failure(stream.finalMessage());
    expect(error).toBeInstanceOf(Anthropic.APIError);
    expect(error).toMatchObject({ message: expect.stringMatching(says) });
  });
});

it("credentials that the engine refuses are an AuthenticationError; the right ones pass through", async () => {
  const guarded = await startBuiltInTarget({ apiKey: "right" });
  onTestFinished(guarded.close);
  const { openai } = clients(guarded.url);
  expect(await failure(openai.chat.completions.create(REQUEST))).toBeInstanceOf(OpenAI.AuthenticationError);
  const allowed = openai.withOptions({ apiKey: "right" });
  expect((await allowed.chat.completions.create(REQUEST)).choices).toHaveLength(1);
});

it("no endpoint at all is an error of the server's side (503), with the request's id", async () => {
  const server = await startServer(testConfig([REFUSING_URL]));
  onTestFinished(() => server.close());
  await until(() => server.runtime.pools[0]?.balancer.members[0]?.availability === "down");
  const { openai, anthropic } = clients(server.listenUrl);
  const openaiError = await failure(openai.chat.completions.create(REQUEST));
  expect(openaiError).toBeInstanceOf(OpenAI.InternalServerError);
  expect(openaiError).toMatchObject({ status: 503, code: "no_available_endpoint", requestID: expect.any(String) });
  const anthropicError = await failure(anthropic.messages.create(REQUEST));
  expect(anthropicError).toBeInstanceOf(Anthropic.InternalServerError);
  expect(anthropicError).toMatchObject({
    status: 503,
    requestID: expect.any(String),
    error: { error: { type: "overloaded_error" } },
  });
});
