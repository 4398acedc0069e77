import { readFile } from "node:fs/promises";

/** One request of a trace. */
export interface TraceRequest {
  /** Since the first request. */
  readonly arrivalMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

const HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens";

/** The first `minutes` of a trace in the format of Azure's LLM inference trace 2023. @throws when it cannot be read. */
export async function readTrace(file: string, minutes: number): Promise<TraceRequest[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new Error(
      `no trace at ${file} (${(error as NodeJS.ErrnoException).code}). It is AzureLLMInferenceTrace_conv.csv of ` +
        "https://github.com/Azure/AzurePublicDataset (data/, CC-BY 4.0): fetch it and name it with --trace FILE",
    );
  }
  const [header, ...lines] = text.trim().split(/\r?\n/);
  if (header?.trim() !== HEADER) throw new Error(`${file}: expected the columns ${HEADER}`);
  const rows = lines.map((line, index) => row(line, `${file}:${index + 2}`));
  const startMs = rows[0]?.arrivalMs ?? 0;
  return rows
    .map((request) => ({ ...request, arrivalMs: request.arrivalMs - startMs }))
    .filter(({ arrivalMs }) => arrivalMs < minutes * 60_000);
}

function row(line: string, place: string): TraceRequest {
  const [time = "", promptTokens, outputTokens] = line.split(",");
  // Seven decimals: more than a date takes.
  const [toTheSecond = "", fraction = "0"] = time.split(".");
  const request = {
    arrivalMs: Date.parse(`${toTheSecond.replace(" ", "T")}Z`) + Number(`0.${fraction}`) * 1000,
    promptTokens: Number(promptTokens),
    outputTokens: Number(outputTokens),
  };
  if (!Object.values(request).every(Number.isFinite)) throw new Error(`${place}: not a request: ${line}`);
  return request;
}
