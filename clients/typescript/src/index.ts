export type * from './api.js'
export { type Cancel, cancelMessage } from './cancel.js'
export { type CancelProof, Client, type ClientOptions, type FollowOptions, type ListFilters, type Milestone, type SubmitOptions, type WaitOptions, WatchtowerError } from './client.js'
export { type TransportConfig, watchtower } from './transport.js'
