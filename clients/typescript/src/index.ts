export type * from './api.js'
export { Client, type ClientOptions, type ListFilters, type Milestone, type SubmitOptions, type WaitOptions, WatchtowerError } from './client.js'
export { type TransportConfig, watchtower } from './transport.js'
