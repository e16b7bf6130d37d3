// Made from api/openapi.yaml by go test ./clients/typescript -update. Do not edit.

/**
 * A chain: its EIP-155 number, or its name by CAIP-2, such as eip155:1. A name of another
 * namespace is accepted if such a chain is served.
 */
export type ChainId = number | string

/** An account, in the form that its chain decides: on chains of eip155, 0x and 40 hex digits. Mixed case must be the checksum of EIP-55. */
export type AccountText = string

/** The hash of a transaction, in the form that its chain decides: on chains of eip155, 0x and 64 hex digits. */
export type HashText = string

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
  chainId: ChainId
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

/** The result for a transaction that was only validated; it is not accepted. */
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
  /** Only for a transaction that was accepted at another time. */
  status?: Status
  /** The client had submitted it before, or it is in the request twice. */
  alreadyKnown: boolean
  finalized?: boolean
  block?: Block
  receipt?: Receipt
}

/** The result of the wait. */
export interface Waited {
  for: 'accepted' | 'submitted' | 'mined' | 'completed' | 'broadcast' | 'executed' | 'final'
  reached: boolean
  /**
   * Why the status is not reached. ended: the transaction ended otherwise, see
   * status. timeout: not yet. stopping, busy, unavailable: this process could not
   * continue to wait.
   */
  because?: 'ended' | 'timeout' | 'stopping' | 'busy' | 'unavailable'
}

export interface Refused {
  ok: false
  problem: Problem
}

/** A fault of the request. One of pointer, parameter and header names its place. */
export interface Fault {
  /** The place in the body: a JSON pointer as a URI fragment (RFC 6901, section 6). */
  pointer?: string
  /** A parameter of the query or the path. */
  parameter?: string
  header?: string
  detail: string
}

export interface ProblemKind {
  type: string
  code: string
  title: string
  /** The HTTP status. */
  status: number
  /** The same request may succeed later. */
  retryable: boolean
  /** What happened and what to do. Code stands in backquotes. */
  meaning: string
}

export interface Problem {
  /** A relative reference to the page of the code, which explains it: `/problems/` and the code. */
  type: string
  title: string
  status: number
  detail?: string
  /** Never changes; see docs/reference/problems.md. */
  code: string
  /** The fault in the bytes of a transaction. */
  reason?: string
  /** The same request may succeed later. */
  retryable?: boolean
  requestId?: string
  /** The faults of the request that have places in it. */
  errors?: Fault[]
}

export interface Page {
  transactions: Transaction[]
  /** Continues the list. A page may have fewer rows than `limit`, or none, and still have a cursor: the request then read many rows that the filter excludes. */
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
  /** The group of the nonce key. A group that has 100,000 members does not list the transaction. */
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
  /** Canceled by its owner; the chain may still contain it. */
  canceled?: boolean
  /** The chain contradicted a final verdict; an operator must investigate. */
  violated?: boolean
  /** The signed bytes are erased. */
  payloadErased?: boolean
  nextActionAt?: Time
  /** Too many open transactions with lower nonces come first. */
  parked?: boolean
  waitingForNonce?: Uint64
  waitingSince?: Time
  /** On hold since then: a node answered that the fee payer cannot pay or the access key is not authorised. Of the client's transactions with that payer and key, one at a time is sent as a probe. */
  accountHeldAt?: Time
  /** Broadcast attempts begun, including unrecorded attempts. */
  attempts: number
  /** Outcomes of the attempts, each with the last attempt at which it was recorded. */
  attemptsSummary: Outcome[]
  lastAttempt?: Attempt
  lastBroadcastAt?: Time
  /** Outcome of the last recorded attempt if no node accepted the bytes. */
  lastError?: string
  /** Outcome of the last attempt, recorded or not. */
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

export interface GroupsPage {
  groups: ListedGroup[]
  /** Continues the list. */
  nextCursor?: string
  hasMore: boolean
}

/**
 * startAt and endAt are the members' smallest and largest eligibleAt. nextPaymentAt is
 * the smallest eligibleAt of the members that have not ended; it is left out when all
 * have ended.
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
  /** Continues the list of members. */
  nextCursor?: string
  hasMore: boolean
  cancelPlan: CancelPlan
}

/** Transaction describes the fields. */
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
   * The members' nonces, rising. Other transactions must use up all of them, and the
   * nonces in between. Empty for the expiring nonce key.
   */
  nonces: Uint64[]
  /** There are more nonces; these are the highest 10000. */
  truncated?: boolean
  /** The nonce key's next nonce on the chain, as of its newest block; null when it is not known. */
  currentNonce: Uint64 | unknown
  /** The chain is past all of these nonces; null when that is not known. */
  alreadyInvalidated: unknown
  /** Why the nonce is not known. */
  reason?: string
}

/**
 * An access key signed, and the chain's AccountKeychain has not confirmed the key's
 * authorization. So the sender is only claimed, and the transaction is in no group.
 * The service asks the chain again, because a later transaction may authorize the key.
 */
export interface GroupPending {
  reason: string
  since: Time
}

/** The parts of a nonce key of the explicit grouping format. */
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

/** The last recorded attempt. */
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
  /** The node's message, cut at 512 bytes. */
  message?: string
  ms: number
}

/** The block on which the verdict is based. */
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
  /** The client's own members. */
  members: CanceledMember[]
}

export interface CanceledMember {
  txHash: Hash
  nonce: Uint64
  status: Status
  /** False for a member that had ended before. */
  canceled: boolean
  payloadErased: boolean
}

export interface Trail {
  chainId: Uint64
  txHash: Hash
  events: Event[]
  /** Continues the list. */
  nextCursor?: string
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
  /** Not in events of a group of which the client sees only its own members. */
  version?: Uint64
  position: Uint64
  at: string
  /** As recorded. */
  data: unknown
  meta: Meta
  stream: string
  chainId: Uint64
  /** Only in events of transactions. */
  txHash?: Hash
  /** Only in events of groups. */
  sender?: Address
  /** Only in events of groups. */
  groupId?: GroupId
}

export interface Mark {
  position: Uint64
  /** The stream is complete and ends here. */
  end?: boolean
}

export interface Meta {
  correlation?: string
  causation?: string
  actor?: string
  trace?: string
  /** SHA-256 over this event and the link of the previous event in its stream. Only for the scope `audit`, or if there are no keys. */
  link?: string
}

/** An OpenAPI document, version 3.1. */
export interface Contract {
  openapi: string
  info: Record<string, unknown>
  paths: Record<string, unknown>
  components: Record<string, unknown>
}

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
  /** The deployment's name in the typed data that cancels a group. */
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

/** The state of one node, as seen by the process that answers. The node's URL, which may contain a key, is never shown. */
export interface Endpoint {
  chainId: Uint64
  name: string
  /** The endpoint is in rotation. */
  healthy: boolean
  /** By latency, error rate, head lag and honesty, from 0 to 1; higher is better. */
  score: number
  head: Uint64
  /** unverified has not shown yet which chain it serves; foreign serves another chain; tripped fails too often; distrusted has contradicted itself or most other endpoints; limited has used up its budget or asked for a pause; lagging is too many blocks behind; leading is alone too many blocks ahead. */
  state: 'healthy' | 'unverified' | 'foreign' | 'tripped' | 'distrusted' | 'limited' | 'lagging' | 'leading'
  breaker: 'closed' | 'half-open' | 'open'
  /** The chain is read from this endpoint. */
  reading: boolean
  lag: Uint64
  lead: Uint64
  /** Moving average. */
  latencyMs: number
  /** Moving average of the share of failed calls. */
  errorRate: number
  inFlight: number
  maxInFlight: number
  /** The endpoint's budget of calls per second; absent without a limit. */
  rate?: {
    perSecond: number
    burst: number
    left: number
  }
  /** The endpoint's budget of calls per day of UTC; absent without a limit. */
  daily?: {
    calls: number
    left: number
  }
  /** Number of times that the circuit breaker has opened. */
  trips: number
  /** Answers that contradicted themselves or most other endpoints. */
  contradictions: number
  /** Answers that differed from another endpoint's answer where no majority could decide. Neither was believed: a state that depends on them stays as it is. A third endpoint decides. */
  differences: number
  /** Calls that the endpoint's budget forbade. */
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
  /** Why the reader cannot process the next event; absent without an error. */
  problem?: string
}

/** A call, or a batch of at most 100. */
export type RpcRequest = RpcCall | RpcCall[]

export interface RpcCall {
  jsonrpc: '2.0'
  /** A string, a number or null; a call without an id is a notification and gets no answer. */
  id?: unknown
  method: string
  params?: unknown[]
}

export type RpcAnswers = RpcAnswer | RpcAnswer[]

export interface RpcAnswer {
  jsonrpc: '2.0'
  /** As sent; null if it could not be read. */
  id: unknown
  /** The method's result. */
  result?: unknown
  error?: RpcError
}

export interface RpcError {
  code: number
  message: string
  /** The problem that the REST API would return; the node's own data; or a hash (code 4). */
  data?: unknown
}
