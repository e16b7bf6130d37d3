export { type Cancel, type CancelProof, cancelMessage } from './cancel.js'
export { type ChainId, Client, type FollowOptions, type GroupFilters, type ListFilters, type Milestone, type SubmitOptions, type WaitOptions } from './client.js'
export type { ClientOptions, RequestOptions } from './connection.js'
export type * from './contract/delivery.js'
export { NoAnswerError, type Problem, type RequestOutcome, WatchtowerError } from './errors.js'
export {
  type Amount, type CreateOptions, type DeadNotice, type FollowedIntentEvent, type FollowIntentsOptions, type Intent, type IntentAttempt, type IntentCall, type IntentEvent, type IntentFilters, type IntentGas, type IntentMessage, type IntentMilestone, type IntentOutcome, type IntentRequest, type IntentResult, type IntentStatus, type NoticeId, Relay, type TriedWebhook, type WaitForIntentOptions, type WaitingFor, type Webhook, Webhooks,
} from './relay.js'
export { RpcCallError } from './rpc.js'
export { verifyWebhook, WebhookError, type WebhookOptions, webhookTolerance } from './webhook.js'
