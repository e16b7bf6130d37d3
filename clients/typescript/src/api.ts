// Made from api/openapi.yaml by go test ./clients/typescript -update. Do not edit.

export type Hash = `0x${string}`

export type Address = `0x${string}`

export type GroupId = `0x${string}`

/** Minimal hex. */
export type NonceKey = `0x${string}`

export type Decimal = string

export type Uint64 = number

/** Unix seconds. */
export type Time = number

/**
 * queued → broadcasting ⇄ retry_scheduled → executed, stale_by_nonce or expired,
 * each final once `finalized` is true; or invalid, or canceled_locally.
 */
export type Status = 'queued' | 'broadcasting' | 'retry_scheduled' | 'executed' | 'stale_by_nonce' | 'expired' | 'invalid' | 'canceled_locally'

export interface Submission {
  chainId: Uint64
  transactions: `0x${string}`[]
}

export interface Results {
  results: (Taken | Validated | Refused)[]
}

export interface Taken {
  ok: true
  txHash: Hash
  sender: Address
  nonceKey: NonceKey
  nonce: Uint64
  groupId?: GroupId
  eligibleAt: Time
  expiresAt?: Time
  status: Status
  /** The client had submitted it before. */
  alreadyKnown: boolean
  /** The verdict's block can no longer leave the chain. */
  finalized?: boolean
  block?: Block
  receipt?: Receipt
  waited?: Waited
}

/** The answer to a transaction that was only looked at; it is not taken on. */
export interface Validated {
  ok: true
  validateOnly: true
  txHash: Hash
  sender: Address
  nonceKey: NonceKey
  nonce: Uint64
  groupId?: GroupId
  eligibleAt: Time
  expiresAt?: Time
  /** Only of a transaction that was taken on at another time. */
  status?: Status
  /** The client had submitted it before, or it is in the request twice. */
  alreadyKnown: boolean
  finalized?: boolean
  block?: Block
  receipt?: Receipt
}

/** What waiting came to. */
export interface Waited {
  for: 'accepted' | 'broadcast' | 'executed' | 'final'
  reached: boolean
  /**
   * Why it is not reached. ended: as things stand it will not be, see status. timeout: not
   * yet. stopping, busy, unavailable: this process could not go on waiting.
   */
  because?: 'ended' | 'timeout' | 'stopping' | 'busy' | 'unavailable'
}

export interface Refused {
  ok: false
  problem: Problem
}

export interface Problem {
  /** /problems/ and the code. */
  type: string
  title: string
  status: number
  detail?: string
  /** Never changes; see docs/problems.md. */
  code: string
  /** What is wrong with the bytes of a transaction. */
  reason?: string
  /** The same request may succeed later. */
  retryable?: boolean
  requestId?: string
}

export interface Page {
  transactions: Transaction[]
  /** Continues the list. A page may have fewer rows than `limit`, or none, and still have one: it has then read many rows that the filter excludes. */
  nextCursor?: string
  hasMore: boolean
}

export interface Transaction {
  chainId: Uint64
  txHash: Hash
  /** The transaction type, EIP-2718: 118 (0x76) is Tempo's. */
  type: number
  sender: Address
  signature: 'secp256k1' | 'p256' | 'webauthn' | 'keychain'
  accessKey?: Address
  feePayer?: Address
  nonceKey: NonceKey
  nonce: Uint64
  groupId?: GroupId
  groupPending?: GroupPending
  nonceKeyInfo?: NonceKeyInfo
  validAfter?: Time
  validBefore?: Time
  eligibleAt: Time
  expiresAt?: Time
  status: Status
  /** The verdict's block can no longer leave the chain. */
  finalized: boolean
  /** Canceled by its owner; the chain may have it all the same. */
  canceled?: boolean
  /** The chain contradicted a final verdict; an operator must look. */
  violated?: boolean
  /** The signed bytes are gone. */
  payloadErased?: boolean
  nextActionAt?: Time
  /** Too many lower nonces come first. */
  parked?: boolean
  waitingForNonce?: Uint64
  waitingSince?: Time
  /** Set aside since then: a node said that the fee payer cannot pay or the access key is not authorised. Of the client's transactions of that payer and key one at a time probes. */
  accountHeldAt?: Time
  /** Broadcast attempts begun, those not recorded included. */
  attempts: number
  /** What attempts came to, each with the last attempt at which it was recorded. */
  attemptsSummary: Outcome[]
  lastAttempt?: Attempt
  lastBroadcastAt?: Time
  /** What the last recorded attempt came to if no node took the bytes. */
  lastError?: string
  /** What the last attempt came to, recorded or not. */
  note?: string
  block?: Block
  receipt?: Receipt
  acceptedAt: Time
  updatedAt: Time
  version: Uint64
  gas?: Uint64
  fees?: Fees
  calls?: Call[]
  waited?: Waited
}

export interface ListedGroup {
  chainId: Uint64
  groupId: GroupId
  nonceKey: NonceKey
  display?: NonceKeyInfo
  startAt: Time
  endAt: Time
  nextPaymentAt?: Time
}

/**
 * startAt and endAt are the members' smallest and largest eligibleAt, and
 * nextPaymentAt the smallest of those that have not ended, left out when all have.
 */
export interface Group {
  chainId: Uint64
  sender: Address
  groupId: GroupId
  nonceKey: NonceKey
  display?: NonceKeyInfo
  startAt: Time
  endAt: Time
  nextPaymentAt?: Time
  members: GroupMember[]
  nextCursor?: string
  cancelPlan: CancelPlan
}

/** What each member means is said under Transaction. */
export interface GroupMember {
  txHash: Hash
  nonceKey: NonceKey
  nonce: Uint64
  status: Status
  finalized: boolean
  canceled?: boolean
  eligibleAt: Time
  expiresAt?: Time
  nextActionAt?: Time
  parked?: boolean
  waitingForNonce?: Uint64
  waitingSince?: Time
}

export interface CancelPlan {
  nonceKey: NonceKey
  /**
   * The members' nonces, rising. Other transactions must use up all of them, and
   * what lies between; none for the expiring nonce key.
   */
  nonces: Uint64[]
  /** There are more; these are the highest 10000. */
  truncated?: boolean
  /** The next nonce that the chain wants of the nonce key, as of its newest block; null when it is not known. */
  currentNonce: Uint64 | unknown
  /** The chain is past all of these nonces; null when that is not known. */
  alreadyInvalidated: unknown
  /** Why it is not known. */
  reason?: string
}

/**
 * An access key signed, and the chain's AccountKeychain has not confirmed that it
 * may: the sender is only claimed, and the transaction is in nobody's group. The
 * chain is asked again, because the authorization may be in a transaction to come.
 */
export interface GroupPending {
  reason: string
  since: Time
}

/** A nonce key of the explicit grouping format, taken apart. */
export interface NonceKeyInfo {
  kind: string
  scope: string
  group: string
  memo: string
}

export interface Outcome {
  outcome: string
  attempt: number
}

/** The last attempt that was recorded. */
export interface Attempt {
  attempt: number
  at: Time
  answers: Answer[]
}

export interface Answer {
  endpoint: string
  class: 'taken' | 'known' | 'retry' | 'permanent' | 'unknown'
  cause?: string
  code?: number
  /** The node's own words, cut at 512 bytes. */
  message?: string
  ms: number
}

/** The block that the verdict rests on. */
export interface Block {
  number: Uint64
  hash: Hash
  time: Time
}

export interface Receipt {
  blockNumber: Uint64
  blockHash: Hash
  transactionIndex: Uint64
  /** 0 is reverted. */
  status: 0 | 1
  gasUsed: Uint64
  effectiveGasPrice?: Decimal
  feePayer?: Address
  feeToken?: Address
}

/** Prices of one unit of gas. */
export interface Fees {
  gasPrice?: Decimal
  maxFeePerGas?: Decimal
  maxPriorityFeePerGas?: Decimal
  feeToken?: Address
}

export interface Call {
  to?: Address
  value: Decimal
  input: string
}

export interface TypedCancel {
  /** Unix seconds, at most 24 hours ahead; it is signed too. */
  expires: number
  signature: string
}

export interface CanceledGroup {
  chainId: Uint64
  sender: Address
  groupId: GroupId
  nonceKey: NonceKey
  /** How many of the members are canceled, other clients' members included. */
  canceled: number
  /** The client's own. */
  members: CanceledMember[]
}

export interface CanceledMember {
  txHash: Hash
  nonce: Uint64
  status: Status
  /** False for one that had ended before. */
  canceled: boolean
  payloadErased: boolean
}

export interface Trail {
  chainId: Uint64
  txHash: Hash
  events: Event[]
  hasMore: boolean
}

export interface Event {
  id: string
  name: string
  version: Uint64
  position: Uint64
  at: string
  /** As recorded. */
  data: unknown
  meta: Meta
}

export interface FollowedEvent {
  id: string
  name: string
  version: Uint64
  position: Uint64
  at: string
  /** As recorded. */
  data: unknown
  meta: Meta
  stream: string
  chainId: Uint64
  /** Of a transaction's event. */
  txHash?: Hash
  /** Of a group's event. */
  sender?: Address
  /** Of a group's event. */
  groupId?: GroupId
}

export interface Mark {
  position: Uint64
  /** Nothing more comes than what was asked for. */
  end?: boolean
}

export interface Meta {
  correlation?: string
  causation?: string
  actor?: string
  trace?: string
  /** SHA-256 over this event and the link of the one before it in its stream. */
  link?: string
}

/** An OpenAPI document, version 3.1. */
export type Contract = Record<string, unknown>

export interface Probe {
  status: string
}

export interface Health {
  status: 'ok' | 'degraded'
  service: string
  version: string
  build: {
    gitSha?: string
    buildTimestamp?: string
  }
  now: Time
  startedAt: Time
  uptimeSeconds: number
  chains: Uint64[]
  /** Its name in the typed data that cancels a group. */
  deployment?: string
  rpcEndpoints: number
  scheduler: {
    pollIntervalMs: number
    leaseTtlSeconds: number
    maxConcurrency: number
    retryMinMs: number
    retryMaxMs: number
    expirySoonWindowSeconds: number
    expirySoonRetryMaxMs: number
  }
  watcher: {
    pollIntervalMs: number
    useWebsocket: boolean
  }
  broadcaster: {
    fanout: number
    timeoutMs: number
  }
  api: {
    maxBodyBytes: number
  }
  dependencies: {
    database: Dependency
    redis?: Dependency
  }
  endpoints?: Endpoint[]
  heads?: Head[]
  readers?: Reader[]
}

export interface Dependency {
  ok: boolean
}

/** How one node does, in the eyes of the process that answers. Its URL, which may hold a key, is never shown. */
export interface Endpoint {
  chainId: Uint64
  name: string
  /** It is in rotation. */
  healthy: boolean
  /** By latency, error rate, head lag and honesty, from 0 to 1; higher is better. */
  score: number
  head: Uint64
  /** unverified has not shown yet which chain it serves; foreign serves another; tripped fails too often; distrusted has contradicted itself or most others; limited has spent its budget or asked for a pause; lagging and leading are too many blocks behind, or alone ahead. */
  state: 'healthy' | 'unverified' | 'foreign' | 'tripped' | 'distrusted' | 'limited' | 'lagging' | 'leading'
  breaker: 'closed' | 'half-open' | 'open'
  /** The chain is read from it. */
  reading: boolean
  lag: Uint64
  lead: Uint64
  /** Moving average. */
  latencyMs: number
  /** Moving share of calls that failed. */
  errorRate: number
  inFlight: number
  maxInFlight: number
  /** Its budget of calls per second; absent without a bound. */
  rate?: {
    perSecond: number
    burst: number
    left: number
  }
  /** Its budget of calls per day of UTC; absent without a bound. */
  daily?: {
    calls: number
    left: number
  }
  /** How often its breaker has opened. */
  trips: number
  /** Answers that contradicted themselves or most other endpoints. */
  contradictions: number
  /** Answers that differed from another endpoint's where no majority could decide. None of them was believed: what depends on them stays as it is. A third endpoint decides. */
  differences: number
  /** Calls that its budget forbade. */
  withheld: number
  problem?: string
  lastError?: string
  lastErrorAt?: Time
}

export interface Head {
  chainId: Uint64
  head: Uint64
  final: Uint64
}

export interface Reader {
  name: string
  position: Uint64
  head: Uint64
  lag: Uint64
  /** Why it cannot get past the next event; absent when nothing is wrong. */
  problem?: string
}

/** A call, or a batch of at most 100. */
export type RpcRequest = RpcCall | RpcCall[]

export interface RpcCall {
  jsonrpc: '2.0'
  /** A string, a number or null; a call without is a notification and gets no answer. */
  id?: unknown
  method: string
  params?: unknown[]
}

export type RpcAnswers = RpcAnswer | RpcAnswer[]

export interface RpcAnswer {
  jsonrpc: '2.0'
  /** As it was sent; null when it could not be read. */
  id: unknown
  /** What the method answers. */
  result?: unknown
  error?: RpcError
}

export interface RpcError {
  code: number
  message: string
  /** The problem that the REST API would answer with; what the node added; or a hash (code 4). */
  data?: unknown
}
