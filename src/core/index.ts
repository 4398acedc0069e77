export type { Account } from "./account.ts";
export { Balancer, type BalancerChange, type BalancerOptions, createBalancer, type Observation } from "./balancer.ts";
export { Breaker, type BreakerState, DEFAULT_EJECTION_OPTIONS, type EjectionOptions } from "./breaker.ts";
export { type Cost, costOf, DECODE_WORK, PREFILL_WORK, workTokens } from "./cost.ts";
export type {
  Decision,
  Exclusion,
  Explanation,
  Forecast,
  Held,
  Outcome,
  RefusalReason,
  Refused,
  Release,
  Routed,
} from "./decision.ts";
export { type Endpoint, type EngineSignals, endpoint, unknownSignals } from "./endpoint.ts";
export {
  decodeStepMs,
  type EngineCoefficients,
  engineCoefficients,
  type MeasuredCoefficients,
  PRIOR_COEFFICIENTS,
  prefillMs,
} from "./engine-coefficients.ts";
export { ENGINE_KINDS, type EngineKind } from "./engine-kind.ts";
export { type DecodeStretch, EngineSpeed, type PrefillBatch, type SpeedSample } from "./engine-speed.ts";
export { HashSlots } from "./hash-slots.ts";
export {
  type Availability,
  DEFAULT_HEALTH_OPTIONS,
  EndpointHealth,
  type HealthOptions,
  type HealthTransition,
  type ProbeOutcome,
  takesTraffic,
} from "./health.ts";
export { type HoldOrder, keyOrder, type Tenant } from "./hold-order.ts";
export { DEFAULT_HOLDING_LIMITS, Holding, type HoldingLimits } from "./holding.ts";
export { KvMirror, type Stay } from "./kv-mirror.ts";
export { Lease, Ledger } from "./ledger.ts";
export { Member } from "./member.ts";
export { fixedOutput, MIN_REMAINING_TOKENS, type OutputExpectation } from "./output-expectation.ts";
export { type OutputKey, OutputLengths } from "./output-lengths.ts";
export { findPolicy, policyDefinitions } from "./policies/index.ts";
export type {
  Candidate,
  Candidates,
  Choice,
  Considered,
  EvictionVisitor,
  HeldPrefill,
  HeldWork,
  LateBinding,
  Policy,
  PolicyContext,
  PolicyDefinition,
  RoutedEvent,
} from "./policy.ts";
export { Pool, type PoolOptions } from "./pool.ts";
export { BLOCK_UNITS, type Prefix, PrefixHasher, type TextRoom } from "./prefix-hash.ts";
export { PromptRatios } from "./prompt-ratios.ts";
export { type Random, seededRandom } from "./random.ts";
export {
  type RecordedRequest,
  type RecordingHeader,
  recordedRequestLine,
  recordedRequestSchema,
  recordingHeaderLine,
  recordingHeaderSchema,
} from "./recording.ts";
export { DEFAULT_OUTPUT_TOKENS, type Priority, type RequestProfile, requestProfile } from "./request.ts";
export { ReuseOdds } from "./reuse-odds.ts";
export { leastBy, sample } from "./select.ts";
export type {
  AccountShare,
  CacheEvent,
  EndpointShare,
  HeldFirst,
  HeldShare,
  PrefillDone,
  SharedWork,
} from "./shared-work.ts";
export { SlotList, type Slotted } from "./slot-list.ts";
export { SpeedPool } from "./speed-pool.ts";
export type { HoldingPlace, Ticket } from "./ticket.ts";
