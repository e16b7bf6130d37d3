// Made from api/relay/openapi.yaml by go test ./clients/typescript -update. Do not edit.

export interface paths {
    "/v1/intents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List intents, newest first
         * @description Lists come from a read model, which may be behind by moments. A request by `key`
         *     with `signer` or `pool` finds the intent as soon as it was accepted. Calls are shown
         *     without their data.
         */
        get: operations["listIntents"];
        put?: never;
        /**
         * Create one intent or a list of intents
         * @description Any replica accepts intents. A 202 response means that the intent is durable. In a
         *     list each intent has its result in its place; a refused intent does not affect the
         *     others. With `wait` the answer comes when every accepted intent has reached that
         *     status or can no longer reach it, or the timeout is over, which is no failure.
         */
        post: operations["createIntents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/intents/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show an intent's current state */
        get: operations["getIntent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/intents/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List an intent's public events
         * @description Apply each event once, by rising `sequence`, to reproduce the intent's state. A
         *     TxConfirmed with `newFork` has the whole list of confirmations, which replaces the
         *     list sent before.
         */
        get: operations["listIntentEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/intents/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel an intent
         * @description The intent is canceled at once if nothing can have been signed for it. Otherwise a
         *     no-op transaction competes for its nonce, and either may land: `outcome` shows which
         *     of the two has.
         */
        post: operations["cancelIntent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/intents/{id}/speed-up": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Raise the fee of an intent's next attempts */
        post: operations["speedUpIntent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the client's webhooks by id, with their attempts
         * @description With the scope audit or admin, the list has the webhooks of all clients.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Show a client its webhook's state and signing secrets
         * @description Changes nothing. A webhook is a client's URL: the same URL of another client has
         *     another id and other secrets. While there are two secrets, both sign.
         */
        post: operations["ownWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/try": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send one test message to a webhook and report the result
         * @description The message is signed as webhook deliveries are, and has the type `ping`. It is sent
         *     even if the webhook is disabled, and its result changes nothing.
         */
        post: operations["tryWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpoint}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show a webhook's state */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpoint}/dead": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List a webhook's dead letters by intent and sequence */
        get: operations["listDeadNotices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpoint}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Redeliver dead letters under their ids
         * @description Sends the named deliveries again, also if they were delivered; or, when none is
         *     named, all that were given up. A delivery that is sent again holds up the later
         *     deliveries of its intent. A webhook that is disabled has to be enabled first. The
         *     request is charged as one for each delivery that it concerns, and as no more than
         *     the client's burst. Deliveries are counted up to the burst and 20,000. All
         *     deliveries that were given up are queued some hundred at a time.
         */
        post: operations["redeliverNotices"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpoint}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enable a webhook and clear its failures
         * @description Deliveries that were given up stay given up until they are redelivered. If the
         *     webhook was disabled so recently that not all deliveries are given up yet, the rest
         *     stays queued.
         */
        post: operations["enableWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{endpoint}/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Disable a webhook
         * @description The queued deliveries to the webhook are given up, some hundred at a time, and so
         *     are later deliveries. None of them is sent meanwhile. The request is charged as one
         *     for each queued delivery, and as no more than the client's burst. Deliveries are
         *     counted up to the burst and 20,000.
         */
        post: operations["disableWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream the public events of all of the client's intents
         * @description As server-sent events, or, with `Accept: application/x-ndjson`, as lines of JSON.
         *     `sequence` counts the events of one intent from 1 without a gap, and `position` is
         *     the event's place in the log. A client that was cut continues with `Last-Event-ID`,
         *     or `after`, and misses nothing; a browser's EventSource does so by itself. Between
         *     events, at least every 15 seconds, the service sends a position up to which
         *     everything was sent: an id without data, or a line with `position` alone. Each event
         *     is a `Message`.
         */
        get: operations["followEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/signers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the signers and pools that the key may use
         * @description A client sees the signers and pools that its key may use, whether they get new intents,
         *     and counts of its own open intents. With the scope audit or admin, and where no API key
         *     exists, the state of all signers is shown, with counts of everybody's intents.
         *
         *     Counts are taken every few moments: `countedAt` says when. Balances are as this replica
         *     last read them.
         */
        get: operations["listSigners"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/signers/{address}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a signer
         * @description As in the list. A signer that the key may not use does not exist for it.
         */
        get: operations["getSigner"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/lanes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List lanes, newest first
         * @description A lane is a signer's nonces on one chain, under one nonce key. The list has every lane that
         *     was ever opened. It comes from a read model, which may be behind by moments. `here` and
         *     `drift` are known to the replica that works on the lane.
         */
        get: operations["listLanes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/lanes/{chain}/{address}/{nonceKey}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a lane, and the chain's next nonce
         * @description As in the list, and with the nonce that the chain expects next, on which a quorum of endpoints
         *     agrees. Without an answer in two seconds, `chainError` is set instead. The request counts as 10.
         */
        get: operations["getLane"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/lanes/{chain}/{address}/{nonceKey}/diagnosis": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Diagnose a lane
         * @description The JSON of `relayer doctor`: nonces in flight, nonces that block others, intents that wait,
         *     and findings with their automatic next step and your options. It asks the chain, and reads the
         *     lane's events. The request counts as 50, and one diagnosis of a client runs at a time.
         */
        get: operations["diagnoseLane"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/rpc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Use the relay as a node of the only chain
         * @description As /rpc/{chainId}, if the relay serves one chain. If it serves several chains, every call
         *     is answered with an error that names them.
         */
        post: operations["rpc"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/rpc/{chainId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Use the relay as a wallet's node of the chain
         * @description JSON-RPC 2.0 for wallets and libraries. eth_accounts lists the signers that the key may
         *     name. A transaction sent with eth_sendTransaction becomes an intent, and the answer is the
         *     hash of its first attempt; this needs the scope submit too. Without an idempotency key (the
         *     header, or the member idempotencyKey), the same call of the same client within the setting
         *     rpc.repeat-window is the same transaction. Reads are passed on to a node.
         *     docs/reference/relayer.md lists the methods and the errors.
         */
        post: operations["rpcOfChain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/rpc/{chainId}/{pool}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Use a pool as a wallet's node of the chain
         * @description As /rpc/{chainId}, for the signers of a pool. `from` may be any of them, or be left out:
         *     the relay chooses the signer.
         */
        post: operations["rpcOfPool"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.yaml": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show this contract */
        get: operations["getContract"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show this contract as JSON */
        get: operations["getContractJson"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show this contract as a web page */
        get: operations["getDocs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/problems/{code}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Explain a code of a problem
         * @description `type` of a problem leads here. The answer is a web page for clients that accept
         *     `text/html`, as browsers do, and JSON for all others.
         */
        get: operations["getProblem"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description A chain: its EIP-155 number, or its name by CAIP-2, such as eip155:1. A name of another
         *     namespace is accepted if such a chain is served.
         * @example 42431
         * @example eip155:42431
         */
        ChainId: number | string;
        /**
         * @description An account, in the form that its chain decides: on chains of eip155, 0x and 40 hex digits. Mixed case must be the checksum of EIP-55.
         * @example 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266
         */
        AccountText: string;
        /**
         * @description The hash of a transaction, in the form that its chain decides: on chains of eip155, 0x and 64 hex digits.
         * @example 0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d
         */
        HashText: string;
        /**
         * @description Identifies the request. Required unless the request has the header `Idempotency-Key`. Compared byte by byte.
         * @example salary-2026-11
         */
        IdempotencyKey: string;
        /** @example 0x9c41d7e09c41d7e09c41d7e09c41d7e0 */
        IntentId: `0x${string}`;
        /** @example 0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d */
        Hash: `0x${string}`;
        RpcError: {
            /** Format: int64 */
            code: number;
            message: string;
            /** @description The problem that the REST API would return; the node's own data; or a hash (code 4). */
            data?: unknown;
        };
        /**
         * @description A call, or a batch of at most 100.
         * @example {
         *       "jsonrpc": "2.0",
         *       "id": 1,
         *       "method": "eth_accounts",
         *       "params": []
         *     }
         */
        RpcRequest: components["schemas"]["RpcCall"] | components["schemas"]["RpcCall"][];
        RpcCall: {
            /** @constant */
            jsonrpc: "2.0";
            /** @description A string, a number or null; a call without an id is a notification and gets no answer. */
            id?: unknown;
            method: string;
            params?: unknown[];
        };
        /**
         * @example {
         *       "jsonrpc": "2.0",
         *       "id": 1,
         *       "result": [
         *         "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
         *       ]
         *     }
         */
        RpcAnswers: components["schemas"]["RpcAnswer"] | components["schemas"]["RpcAnswer"][];
        RpcAnswer: {
            /** @constant */
            jsonrpc: "2.0";
            /** @description As sent; null if it could not be read. */
            id: unknown;
            /** @description The method's result. */
            result?: unknown;
            error?: components["schemas"]["RpcError"];
        };
        /**
         * @description Mixed case must be the checksum of EIP-55; without a checksum all letters have the same case.
         * @example 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266
         */
        Address: `0x${string}`;
        /** @example 0x0 */
        NonceKeyText: `0x${string}`;
        /** @example 1000000 */
        Amount: string;
        /** @example 0xa9059cbb */
        Data: `0x${string}`;
        /** @example reverted */
        Reason: string;
        /**
         * @description An intent is mined when a block contains one of its attempts other than a no-op;
         *     receipt shows whether that attempt reverted. While an intent is being stopped it is
         *     canceling, also when a block contains the no-op. When that block is final, the
         *     intent is canceled or failed.
         * @example waiting
         * @enum {string}
         */
        Status: "waiting" | "assigned" | "submitted" | "canceling" | "mined" | "completed" | "failed" | "canceled";
        /**
         * @example {
         *       "chainId": 42431,
         *       "key": "salary-2026-11",
         *       "pool": "hot",
         *       "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
         *       "value": "1000000"
         *     }
         */
        Requests: components["schemas"]["Request"] | components["schemas"]["Request"][];
        /**
         * @description Names `signer` or `pool`, and the calls: `calls`, or one call by `to`, `value` and
         *     `data`. The relay chooses every value that is left out.
         * @example {
         *       "chainId": 42431,
         *       "key": "salary-2026-11",
         *       "pool": "hot",
         *       "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
         *       "value": "1000000"
         *     }
         */
        Request: {
            chainId: components["schemas"]["ChainId"];
            key?: components["schemas"]["IdempotencyKey"];
            signer?: components["schemas"]["AccountText"];
            pool?: string;
            to?: components["schemas"]["AccountText"];
            value?: components["schemas"]["Amount"];
            data?: components["schemas"]["Data"];
            calls?: components["schemas"]["Call"][];
            gas?: components["schemas"]["Gas"];
            /**
             * Format: int64
             * @description The earliest time at which the intent gets a nonce, in Unix seconds; 0 for at once. It is before the deadline. Later intents with the same ordering key wait for it.
             */
            notBefore?: number;
            /**
             * Format: int64
             * @description The time at which the intent expires, in Unix seconds; 0 for never.
             */
            deadline?: number;
            /** @description A client's intents with the same ordering key land in the order in which they were requested. */
            orderingKey?: string;
            nonceKey?: components["schemas"]["NonceKey"];
            /** @description The client's own customer: limits and budgets may count by it. */
            subject?: string;
            webhooks?: string[];
            metadata?: {
                [key: string]: string;
            };
            /** @description A node simulates the calls first; an intent that would revert is not sent. */
            simulate?: boolean;
        };
        Call: {
            to?: components["schemas"]["AccountText"];
            value?: components["schemas"]["Amount"];
            data?: components["schemas"]["Data"];
        };
        Gas: {
            /**
             * Format: int64
             * @description From 21000, or what the calls need before any code runs, to the limit that fee.gas-ceiling allows; 0 or none: the nodes' estimate, and a margin.
             */
            limit?: number;
            /** @enum {string} */
            urgency?: "slow" | "normal" | "fast";
            /** @description The maximum fee of any attempt; 0 or none means the relayer's fee.ceiling. An intent waits without a nonce until the ceiling leaves room for the base fee to rise by an eighth. If gas costs more than the ceiling later, the intent gives its nonce up and waits for another. */
            maxFeePerGas?: components["schemas"]["Amount"];
            maxPriorityFeePerGas?: components["schemas"]["Amount"];
            feeToken?: components["schemas"]["Address"];
            sponsored?: boolean;
        };
        NonceKey: {
            /** @enum {string} */
            mode: "protocol" | "ordered" | "fixed";
            /** @description Only with the mode fixed. Keys that begin with 0x4f belong to ordering keys, and are refused. */
            key?: components["schemas"]["NonceKeyText"];
        };
        /**
         * @example {
         *       "reason": "ordered twice"
         *     }
         */
        Cancel: {
            reason?: string;
        };
        /**
         * @description The fee must be at least a tenth above the fee of the previous speed-up (422, fee-raise-too-small), and an intent can be sped up 64 times (409, too-many-speed-ups). A fee that was requested before changes nothing.
         * @example {
         *       "feePerGas": "40000000000"
         *     }
         */
        SpeedUp: {
            feePerGas: components["schemas"]["Amount"];
        };
        /**
         * @example {
         *       "id": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *       "status": "waiting",
         *       "client": "payroll",
         *       "key": "salary-2026-11",
         *       "chainId": 42431,
         *       "pool": "hot",
         *       "calls": [
         *         {
         *           "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
         *           "value": "0",
         *           "data": "0xa9059cbb"
         *         }
         *       ],
         *       "sequence": 0,
         *       "attempts": [],
         *       "requestedAt": 1795230000,
         *       "alreadyKnown": false
         *     }
         */
        Created: components["schemas"]["Intent"] | components["schemas"]["Results"];
        Results: {
            results: (components["schemas"]["Taken"] | components["schemas"]["Refused"])[];
        };
        Taken: {
            /** @constant */
            ok: true;
            intent: components["schemas"]["Intent"];
        };
        Refused: {
            /** @constant */
            ok: false;
            problem: components["schemas"]["Problem"];
        };
        /**
         * @example {
         *       "intents": [
         *         {
         *           "id": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *           "status": "mined",
         *           "client": "payroll",
         *           "key": "salary-2026-11",
         *           "chainId": 42431,
         *           "pool": "hot",
         *           "calls": [
         *             {
         *               "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
         *               "value": "0",
         *               "data": "0xa9059cbb"
         *             }
         *           ],
         *           "sequence": 3,
         *           "place": {
         *             "signer": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *             "nonceKey": "0x0",
         *             "nonce": 7
         *           },
         *           "attempts": [
         *             {
         *               "attempt": 1,
         *               "kind": "first",
         *               "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *               "maxFeePerGas": "20000000000",
         *               "maxPriorityFeePerGas": "0",
         *               "at": 1795230001
         *             }
         *           ],
         *           "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *           "receipt": {
         *             "block": {
         *               "number": 184,
         *               "hash": "0xa07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453",
         *               "time": 1795230007
         *             },
         *             "transactionIndex": 0,
         *             "status": 1,
         *             "gasUsed": 50000
         *           },
         *           "requestedAt": 1795230000,
         *           "updatedAt": 1795230007
         *         }
         *       ],
         *       "hasMore": false
         *     }
         */
        Page: {
            intents: components["schemas"]["Intent"][];
            /** @description Continues the list. A page may have fewer rows than `limit`, or none, and still have a cursor: the request then read many rows that the filter excludes. */
            nextCursor?: string;
            hasMore: boolean;
        };
        /**
         * @example {
         *       "signers": [
         *         {
         *           "address": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *           "pools": [
         *             "hot"
         *           ],
         *           "chains": [
         *             {
         *               "chainId": 42431,
         *               "serves": true,
         *               "waiting": 0,
         *               "assigned": 2
         *             }
         *           ]
         *         }
         *       ],
         *       "pools": [
         *         {
         *           "name": "hot",
         *           "signers": [
         *             "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
         *           ],
         *           "waiting": 5
         *         }
         *       ],
         *       "countedAt": 1795230000
         *     }
         */
        Signers: {
            signers: components["schemas"]["Signer"][];
            pools: {
                name: string;
                signers: components["schemas"]["Address"][];
                /**
                 * Format: int64
                 * @description Intents without a nonce that were requested from the pool.
                 */
                waiting: number;
            }[];
            /**
             * Format: int64
             * @description When the intents were counted; absent before the first count.
             */
            countedAt?: number;
        };
        /**
         * @example {
         *       "address": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *       "pools": [
         *         "hot"
         *       ],
         *       "chains": [
         *         {
         *           "chainId": 42431,
         *           "serves": true,
         *           "waiting": 0,
         *           "assigned": 2,
         *           "status": "serving",
         *           "threshold": "0",
         *           "balance": "500000000000000000",
         *           "balanceAt": 1795230000,
         *           "failures": 0,
         *           "nextNonce": 9,
         *           "inFlight": 2,
         *           "signedAt": 1795229999
         *         }
         *       ]
         *     }
         */
        Signer: {
            address: components["schemas"]["Address"];
            pools: string[];
            chains: components["schemas"]["SignerOnChain"][];
        };
        /** @description The members from `status` on are for keys with the scope audit or admin. */
        SignerOnChain: {
            /** Format: int64 */
            chainId: number;
            /** @description The signer gets new intents. */
            serves: boolean;
            /**
             * Format: int64
             * @description Intents that name the signer and have no nonce.
             */
            waiting: number;
            /**
             * Format: int64
             * @description Intents that have a nonce of the signer.
             */
            assigned: number;
            status?: components["schemas"]["SignerStatus"];
            /** @description The actor of the last change of the status. */
            actor?: string;
            reason?: string;
            /** Format: int64 */
            since?: number;
            /** @description The least balance with which it serves. */
            threshold?: string;
            /** @description As this replica last read it. */
            balance?: string;
            /**
             * Format: int64
             * @description When the balance was read.
             */
            balanceAt?: number;
            /**
             * Format: int32
             * @description Failures in a row.
             */
            failures?: number;
            lastError?: components["schemas"]["LastError"];
            /**
             * Format: int64
             * @description Of the lane of nonce key 0: the lowest nonce that was never assigned.
             */
            nextNonce?: number;
            /**
             * Format: int32
             * @description Nonces in flight in the lane of nonce key 0.
             */
            inFlight?: number;
            /**
             * Format: int64
             * @description When its last attempt in that lane was signed.
             */
            signedAt?: number;
        };
        /** @enum {string} */
        SignerStatus: "serving" | "low" | "draining" | "drained" | "paused" | "disabled" | "unregistered";
        LastError: {
            kind?: string;
            detail?: string;
            /** Format: int64 */
            at: number;
        };
        /**
         * @example {
         *       "lanes": [],
         *       "hasMore": false
         *     }
         */
        Lanes: {
            lanes: components["schemas"]["Lane"][];
            /** Format: int64 */
            countedAt?: number;
            nextCursor?: string;
            hasMore: boolean;
        };
        /**
         * @example {
         *       "chainId": 42431,
         *       "signer": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *       "nonceKey": "0x0",
         *       "holder": "host-1",
         *       "token": 3,
         *       "openedAt": 1795220000,
         *       "nextNonce": 9,
         *       "inFlight": 2,
         *       "open": 4,
         *       "holes": 0,
         *       "front": {
         *         "nonce": 7,
         *         "intentId": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *         "since": 1795229990,
         *         "attempts": 1,
         *         "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d"
         *       },
         *       "waiting": 5,
         *       "assigned": 2,
         *       "signerStatus": "serving",
         *       "balance": "500000000000000000",
         *       "balanceAt": 1795230000,
         *       "signedAt": 1795229999,
         *       "seenAt": 1795230000,
         *       "here": {
         *         "budget": 100,
         *         "turnAt": 1795230000,
         *         "inTrouble": false
         *       },
         *       "chainNonce": 7,
         *       "chainBlock": 184,
         *       "drift": 0
         *     }
         */
        Lane: {
            /** Format: int64 */
            chainId: number;
            signer: components["schemas"]["Address"];
            nonceKey: string;
            /** @description The process that opened the lane last. */
            holder?: string;
            /**
             * Format: int64
             * @description The holder's fencing token.
             */
            token: number;
            /** Format: int64 */
            openedAt?: number;
            /**
             * Format: int64
             * @description The lowest nonce that was never assigned; absent before the chain was asked.
             */
            nextNonce?: number;
            /**
             * Format: int32
             * @description Nonces that an intent or a no-op has and that are in no block.
             */
            inFlight: number;
            /**
             * Format: int32
             * @description Nonces that no final block has closed.
             */
            open: number;
            /**
             * Format: int32
             * @description Unsigned nonces below a signed nonce.
             */
            holes: number;
            /** @description The lowest nonce that is signed and in no block. */
            front?: {
                /** Format: int64 */
                nonce: number | bigint;
                intentId?: components["schemas"]["IntentId"];
                /**
                 * Format: int64
                 * @description When its first attempt was signed.
                 */
                since: number;
                /** Format: int32 */
                attempts: number;
                txHash: components["schemas"]["Hash"];
            };
            /**
             * Format: int64
             * @description Intents without a nonce that may get one of this lane. Other lanes of a pool may get them.
             */
            waiting: number;
            /**
             * Format: int64
             * @description Intents that have a nonce of this lane.
             */
            assigned: number;
            signerStatus: components["schemas"]["SignerStatus"];
            balance?: string;
            /** Format: int64 */
            balanceAt?: number;
            /**
             * Format: int64
             * @description When the last attempt was signed.
             */
            signedAt?: number;
            /**
             * Format: int64
             * @description The last event or, at the replica that works on the lane, the last turn.
             */
            seenAt?: number;
            /** @description Present at the replica that works on the lane. */
            here?: {
                /**
                 * Format: int32
                 * @description The most nonces in flight.
                 */
                budget: number;
                /**
                 * Format: int64
                 * @description When the last turn ended.
                 */
                turnAt: number;
                /** @description The last turn failed. */
                inTrouble: boolean;
                lastError?: components["schemas"]["LastError"];
            };
            /**
             * Format: int64
             * @description The nonce that the chain expects next.
             */
            chainNonce?: number;
            /**
             * Format: int64
             * @description The block at which that was read.
             */
            chainBlock?: number;
            /**
             * Format: int64
             * @description Nonces used on the chain but not in the records (above 0), or in the records but not on the chain (below 0).
             */
            drift?: number;
            /** @description Why the chain's next nonce is not known. */
            chainError?: string;
        };
        /**
         * @description As `relayer doctor` prints it. Times are RFC 3339.
         * @example {
         *       "chain": 42431,
         *       "signer": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *       "nonceKey": "0x0",
         *       "well": false,
         *       "cursor": 9,
         *       "wants": 7,
         *       "inFlight": 2,
         *       "room": 100,
         *       "holder": "host-1",
         *       "token": 3,
         *       "findings": [
         *         {
         *           "code": "full",
         *           "says": "All 100 nonces that may be in flight are.",
         *           "next": "The holder takes further intents as nonces land."
         *         }
         *       ]
         *     }
         */
        Diagnosis: {
            /** Format: int64 */
            chain: number;
            signer: components["schemas"]["Address"];
            nonceKey: string;
            /** @description Nothing was found. */
            well: boolean;
            /**
             * Format: int64
             * @description The next nonce to be reserved.
             */
            cursor?: number;
            /**
             * Format: int64
             * @description The next nonce on the chain.
             */
            wants?: number;
            /** Format: int32 */
            inFlight: number;
            /**
             * Format: int32
             * @description The most nonces in flight.
             */
            room: number;
            holder?: string;
            /** Format: int64 */
            token?: number;
            /** @description The first nonce that waits for the chain. */
            front?: Record<string, never>;
            holes?: Record<string, never>[];
            findings: {
                code: string;
                says: string;
                /** @description The automatic next step. */
                next?: string;
                /** @description What you can do. */
                do?: string;
            }[];
        };
        /**
         * @example {
         *       "id": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *       "status": "mined",
         *       "client": "payroll",
         *       "key": "salary-2026-11",
         *       "chainId": 42431,
         *       "pool": "hot",
         *       "calls": [
         *         {
         *           "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
         *           "value": "0",
         *           "data": "0xa9059cbb"
         *         }
         *       ],
         *       "sequence": 3,
         *       "place": {
         *         "signer": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *         "nonceKey": "0x0",
         *         "nonce": 7
         *       },
         *       "attempts": [
         *         {
         *           "attempt": 1,
         *           "kind": "first",
         *           "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *           "maxFeePerGas": "20000000000",
         *           "maxPriorityFeePerGas": "0",
         *           "at": 1795230001
         *         }
         *       ],
         *       "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *       "receipt": {
         *         "block": {
         *           "number": 184,
         *           "hash": "0xa07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453",
         *           "time": 1795230007
         *         },
         *         "transactionIndex": 0,
         *         "status": 1,
         *         "gasUsed": 50000
         *       },
         *       "requestedAt": 1795230000,
         *       "updatedAt": 1795230007
         *     }
         */
        Intent: {
            id: components["schemas"]["IntentId"];
            status: components["schemas"]["Status"];
            client?: string;
            key: string;
            /** Format: uint64 */
            chainId: number;
            signer?: components["schemas"]["Address"];
            pool?: string;
            calls: components["schemas"]["Call"][];
            gas?: components["schemas"]["Gas"];
            /** Format: int64 */
            notBefore?: number;
            /** Format: int64 */
            deadline?: number;
            orderingKey?: string;
            nonceKey?: components["schemas"]["NonceKey"];
            subject?: string;
            webhooks?: {
                origin: string;
            }[];
            metadata?: {
                [key: string]: string;
            };
            simulate?: boolean;
            /**
             * Format: int64
             * @description Sequence of the last event.
             */
            sequence: number;
            place?: components["schemas"]["Place"];
            leastFeePerGas?: components["schemas"]["Amount"];
            attempts: components["schemas"]["Attempt"][];
            /** @description The hash of the first attempt at the calls. A later attempt may be mined instead. */
            firstTxHash?: components["schemas"]["Hash"];
            /** @description The hash of the attempt that the receipt belongs to. */
            txHash?: components["schemas"]["Hash"];
            receipt?: components["schemas"]["Receipt"];
            confirmations?: components["schemas"]["Block"][];
            stopping?: components["schemas"]["Stopping"];
            waitingFor?: components["schemas"]["WaitingFor"];
            /**
             * Format: int64
             * @description Since when the intent waits for that, if it is known.
             */
            waitingSince?: number;
            outcome?: components["schemas"]["Outcome"];
            /**
             * Format: uuid
             * @description The request that created the intent: its `X-Request-Id` if that is a UUID, else a UUID
             *     that follows from it. Logs have it as `request`, and events as `correlation`.
             */
            requestId?: string;
            /** @description The W3C trace of that request. */
            traceId?: string;
            /** Format: int64 */
            requestedAt: number;
            /**
             * Format: int64
             * @description Absent in answers to commands.
             */
            updatedAt?: number;
            /** @description The intent had been requested before. */
            alreadyKnown?: boolean;
            waited?: components["schemas"]["Waited"];
        };
        Place: {
            signer: components["schemas"]["Address"];
            nonceKey: components["schemas"]["NonceKeyText"];
            /** Format: int64 */
            nonce: number | bigint;
        };
        Attempt: {
            /** Format: int32 */
            attempt: number;
            /** @enum {string} */
            kind: "first" | "bump" | "no-op";
            txHash: components["schemas"]["Hash"];
            replaces?: components["schemas"]["Hash"];
            maxFeePerGas?: components["schemas"]["Amount"];
            maxPriorityFeePerGas?: components["schemas"]["Amount"];
            /** Format: int64 */
            at: number;
        };
        Block: {
            /** Format: int64 */
            number: number;
            hash: components["schemas"]["Hash"];
            /** Format: int64 */
            time: number;
        };
        Receipt: {
            block: components["schemas"]["Block"];
            /** Format: int64 */
            transactionIndex: number;
            /**
             * Format: int64
             * @description 1, or 0 when a call reverted.
             */
            status: number;
            /** Format: int64 */
            gasUsed: number;
            effectiveGasPrice?: string;
            feePayer?: components["schemas"]["Address"];
            feeToken?: components["schemas"]["Address"];
        };
        /** @description Why the intent is being stopped. */
        Stopping: {
            reason: components["schemas"]["Reason"];
            detail?: string;
        };
        /**
         * @description The reason why nothing is signed for the intent yet, as far as the answering replica
         *     knows. It is shown when an intent is requested by its id and nothing is signed for
         *     it. If it is absent, no reason is known; mostly the intent's turn is about to come.
         */
        WaitingFor: {
            /** @enum {string} */
            code: "not-before" | "halted" | "signer-stopped" | "budget-spent" | "budget-over-limit" | "behind-another" | "lane-full" | "lane-stalled" | "market-above-ceiling";
            detail?: string;
        };
        /** @description How the intent ended. Of a completed intent, `reason` is why it should have been stopped. */
        Outcome: {
            reason?: components["schemas"]["Reason"];
            detail?: string;
            txHash?: components["schemas"]["Hash"];
            block?: components["schemas"]["Block"];
        };
        Waited: {
            /** @enum {string} */
            for: "accepted" | "assigned" | "submitted" | "mined" | "completed";
            reached: boolean;
            /** @enum {string} */
            because?: "ended" | "timeout" | "stopping" | "busy" | "unavailable";
        };
        /**
         * @example {
         *       "id": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *       "events": [
         *         {
         *           "intent": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *           "sequence": 2,
         *           "type": "TxSubmitted",
         *           "at": "2026-11-20T08:00:01Z",
         *           "data": {
         *             "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d"
         *           }
         *         }
         *       ],
         *       "hasMore": false
         *     }
         */
        Trail: {
            id: components["schemas"]["IntentId"];
            events: components["schemas"]["Event"][];
            /** @description Continues the list. */
            nextCursor?: string;
            hasMore: boolean;
        };
        Event: {
            intent: components["schemas"]["IntentId"];
            /** Format: int64 */
            sequence: number;
            /** @enum {string} */
            type: "TxAccepted" | "TxSubmitted" | "TxReplaced" | "TxReceiptUpdated" | "TxConfirmed" | "TxFailed";
            /** Format: date-time */
            at: string;
            data: Record<string, never>;
        };
        /**
         * @description An event with all that a receiver needs to act on it without a look-up: the request,
         *     and the intent's state right after the event. Webhooks and brokers carry it,
         *     and `/v1/events` with its position. Only deliveries that an older version has queued lack `request` and `state`.
         */
        Message: {
            intent: components["schemas"]["IntentId"];
            /**
             * Format: int64
             * @description Number of the intent's event, from 1 without gaps.
             */
            sequence: number;
            /** @enum {string} */
            type: "TxAccepted" | "TxSubmitted" | "TxReplaced" | "TxReceiptUpdated" | "TxConfirmed" | "TxFailed";
            /** Format: date-time */
            at: string;
            data: Record<string, never>;
            request?: components["schemas"]["MessageRequest"];
            state?: components["schemas"]["MessageState"];
        };
        MessageRequest: {
            client?: string;
            /** @description The idempotency key. */
            key: string;
            /** Format: int64 */
            chainId: number;
            signer?: components["schemas"]["Address"];
            pool?: string;
            orderingKey?: string;
            /** Format: int64 */
            notBefore?: number;
            /** Format: int64 */
            deadline?: number;
            subject?: string;
            metadata?: {
                [key: string]: string;
            };
            calls: components["schemas"]["MessageCall"][];
        };
        MessageCall: {
            /** @description Absent for the creation of a contract. */
            to?: components["schemas"]["Address"];
            value: components["schemas"]["Amount"];
            /** @description The call's input, if the inputs of all calls together have at most `messages.data-bytes`. */
            data?: components["schemas"]["Data"];
            /** @description Keccak-256 of a longer input. Until the calls are mined, auditors and brokers get neither `data` nor `dataHash`. */
            dataHash?: components["schemas"]["Hash"];
            /**
             * Format: int64
             * @description Length of the input.
             */
            dataBytes?: number;
        };
        MessageState: {
            status: components["schemas"]["Status"];
            /** @description The account that signs; absent, like the nonce, while the intent has no nonce. */
            signer?: components["schemas"]["Address"];
            nonceKey?: components["schemas"]["NonceKeyText"];
            /** Format: int64 */
            nonce?: number | bigint;
            /** @description The mined transaction, or else the last one that was signed for the nonce. */
            hash?: components["schemas"]["Hash"];
            /**
             * @description A no-op carries out no calls.
             * @enum {string}
             */
            kind?: "first" | "bump" | "no-op";
            /** @description What the transaction offers per unit of gas. */
            fee?: {
                maxFee?: string;
                maxPriorityFee?: string;
            };
            receipt?: components["schemas"]["MessageReceipt"];
            /**
             * Format: int64
             * @description Number of blocks that confirm the receipt and were reported.
             */
            confirmations: number;
            reason?: components["schemas"]["Reason"];
            detail?: string;
        };
        MessageReceipt: {
            block: {
                /** Format: int64 */
                number: number;
                hash: components["schemas"]["Hash"];
                parent: components["schemas"]["Hash"];
                /** Format: int64 */
                time: number;
            };
            /** Format: int64 */
            index: number;
            /**
             * Format: int64
             * @description 1, or 0 when a call reverted.
             */
            status: number;
            /** Format: int64 */
            gasUsed: number;
            effectiveGasPrice?: string;
            feePayer?: components["schemas"]["Address"];
            feeToken?: components["schemas"]["Address"];
        };
        /**
         * @example {
         *       "position": 1204,
         *       "intent": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *       "sequence": 2,
         *       "type": "TxSubmitted",
         *       "at": "2026-11-20T08:00:01Z",
         *       "data": {
         *         "hash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *         "attempt": 1
         *       },
         *       "request": {
         *         "client": "shop",
         *         "key": "order-17",
         *         "chainId": 42431,
         *         "pool": "hot",
         *         "metadata": {
         *           "invoice": "4711"
         *         },
         *         "calls": [
         *           {
         *             "to": "0x20c0000000000000000000000000000000000001",
         *             "value": "0",
         *             "data": "0xa9059cbb",
         *             "dataBytes": 4
         *           }
         *         ]
         *       },
         *       "state": {
         *         "status": "submitted",
         *         "signer": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
         *         "nonceKey": "0x0",
         *         "nonce": 7,
         *         "hash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *         "kind": "first",
         *         "confirmations": 0
         *       }
         *     }
         */
        StreamedEvent: {
            /**
             * Format: int64
             * @description The event's place in the log.
             */
            position: number;
            intent: components["schemas"]["IntentId"];
            /** Format: int64 */
            sequence: number;
            /** @enum {string} */
            type: "TxAccepted" | "TxSubmitted" | "TxReplaced" | "TxReceiptUpdated" | "TxConfirmed" | "TxFailed";
            /** Format: date-time */
            at: string;
            data: Record<string, never>;
            request: components["schemas"]["MessageRequest"];
            state: components["schemas"]["MessageState"];
        };
        /**
         * @example {
         *       "position": 1204
         *     }
         */
        Mark: {
            /**
             * Format: int64
             * @description Everything up to this position was sent.
             */
            position: number;
            /** @description The stream is complete and ends here. */
            end?: boolean;
        };
        /** @example 4b1f4b1f4b1f4b1f4b1f4b1f4b1f4b1f */
        WebhookId: string;
        /**
         * @example {
         *       "url": "https://shop.example/hooks/payments"
         *     }
         */
        GivenURL: {
            /** Format: uri */
            url: string;
        };
        /**
         * @example {
         *       "id": "4b1f4b1f4b1f4b1f4b1f4b1f4b1f4b1f",
         *       "origin": "https://shop.example",
         *       "known": true,
         *       "failures": 0,
         *       "attempts": 12,
         *       "delivered": 12,
         *       "lastAttempt": {
         *         "at": 1795161601,
         *         "delivered": true,
         *         "status": 204
         *       }
         *     }
         */
        Webhook: {
            id: components["schemas"]["WebhookId"];
            origin: string;
            /** @description The secrets that sign webhook deliveries, by Standard Webhooks, newest first. */
            secrets?: string[];
            /** @description At least one delivery was due to this webhook. */
            known: boolean;
            /**
             * Format: int32
             * @description Failed attempts since the last success.
             */
            failures: number;
            /** Format: int64 */
            failingSince?: number;
            /**
             * Format: int64
             * @description No delivery is sent before this time.
             */
            pausedUntil?: number;
            /**
             * @description Why no delivery is sent: the webhook answered 410 (gone), has failed for too long (failing), or a command disabled it (operator).
             * @enum {string}
             */
            disabled?: "gone" | "failing" | "operator";
            /** Format: int64 */
            disabledAt?: number;
            /**
             * Format: int64
             * @description Number of all attempts.
             */
            attempts: number;
            /**
             * Format: int64
             * @description Number of the attempts that delivered an event.
             */
            delivered: number;
            lastAttempt?: {
                /** Format: int64 */
                at: number;
                delivered: boolean;
                cause?: components["schemas"]["NoticeCause"];
                /**
                 * Format: int64
                 * @description The HTTP status of the webhook's answer.
                 */
                status?: number;
            };
            /**
             * Format: int64
             * @description Number of deliveries that the command concerns, counted up to the client's burst and 20,000. Only answers to `disable` and `redeliver` have it.
             */
            notices?: number;
        };
        /**
         * @example {
         *       "webhooks": [
         *         {
         *           "id": "4b1f4b1f4b1f4b1f4b1f4b1f4b1f4b1f",
         *           "origin": "https://shop.example",
         *           "known": true,
         *           "failures": 0,
         *           "attempts": 12,
         *           "delivered": 12,
         *           "lastAttempt": {
         *             "at": 1795161601,
         *             "delivered": true,
         *             "status": 204
         *           }
         *         }
         *       ],
         *       "hasMore": false
         *     }
         */
        WebhooksPage: {
            webhooks: components["schemas"]["Webhook"][];
            /** @description Continues the list. */
            nextCursor?: string;
            hasMore: boolean;
        };
        /**
         * @example {
         *       "id": "4b1f4b1f4b1f4b1f4b1f4b1f4b1f4b1f",
         *       "delivered": true,
         *       "status": 204
         *     }
         */
        Tried: {
            id: components["schemas"]["WebhookId"];
            delivered: boolean;
            cause?: components["schemas"]["NoticeCause"];
            /**
             * Format: int64
             * @description The HTTP status of the webhook's answer.
             */
            status?: number;
        };
        /** @enum {string} */
        NoticeCause: "" | "status" | "forbidden" | "name" | "connect" | "tls" | "timeout" | "cut" | "protocol" | "unfit" | "disabled";
        /**
         * @example {
         *       "notices": [
         *         {
         *           "intent": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *           "sequence": 2,
         *           "attempts": 12,
         *           "cause": "status",
         *           "status": 500,
         *           "lastAt": 1795230500,
         *           "event": {
         *             "intent": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *             "sequence": 2,
         *             "type": "TxSubmitted",
         *             "at": "2026-11-20T08:00:01Z",
         *             "data": {
         *               "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d"
         *             }
         *           }
         *         }
         *       ],
         *       "hasMore": false
         *     }
         */
        DeadPage: {
            notices: {
                intent: components["schemas"]["IntentId"];
                /** Format: int64 */
                sequence: number;
                /**
                 * Format: int64
                 * @description Attempts since the delivery was queued.
                 */
                attempts: number;
                cause: components["schemas"]["NoticeCause"];
                /** Format: int64 */
                status?: number;
                /**
                 * Format: int64
                 * @description When the last attempt ended.
                 */
                lastAt?: number;
                event: components["schemas"]["Message"];
            }[];
            /** @description Continues the list. */
            nextCursor?: string;
            hasMore: boolean;
        };
        /**
         * @example {
         *       "notices": [
         *         {
         *           "intent": "0x9c41d7e09c41d7e09c41d7e09c41d7e0",
         *           "sequence": 2
         *         }
         *       ]
         *     }
         */
        Redelivery: {
            notices?: {
                intent: components["schemas"]["IntentId"];
                /** Format: int64 */
                sequence: number;
            }[];
        };
        /**
         * @description An OpenAPI document, version 3.1.
         * @example {
         *       "openapi": "3.1.0",
         *       "info": {
         *         "title": "Watchtower",
         *         "version": "1"
         *       },
         *       "paths": {},
         *       "components": {}
         *     }
         */
        Contract: {
            openapi: string;
            info: {
                [key: string]: unknown;
            };
            paths: {
                [key: string]: unknown;
            };
            components: {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        /**
         * @description A fault of the request. One of pointer, parameter and header names its place.
         * @example {
         *       "pointer": "#/chainId",
         *       "detail": "/chainId must be a number or a string such as eip155:1, not null"
         *     }
         */
        Fault: {
            /** @description The place in the body: a JSON pointer as a URI fragment (RFC 6901, section 6). */
            pointer?: string;
            /** @description A parameter of the query or the path. */
            parameter?: string;
            header?: string;
            detail: string;
        };
        /**
         * @example {
         *       "type": "/problems/invalid-limit",
         *       "code": "invalid-limit",
         *       "title": "The limit is out of range",
         *       "status": 400,
         *       "retryable": false,
         *       "meaning": "`limit` is not a number from 1 to 1000."
         *     }
         */
        ProblemKind: {
            type: string;
            code: string;
            title: string;
            /**
             * Format: int32
             * @description The HTTP status.
             */
            status: number;
            /** @description The same request may succeed later. */
            retryable: boolean;
            /** @description What happened and what to do. Code stands in backquotes. */
            meaning: string;
        };
        /**
         * @example {
         *       "type": "/problems/invalid-request",
         *       "title": "The request does not have the expected form",
         *       "status": 400,
         *       "detail": "/chainId must be a number or a string such as eip155:1, not null",
         *       "code": "invalid-request",
         *       "requestId": "0c8d0f0e-7c1e-4a5b-9c3f-0d4f5b8b2a11",
         *       "errors": [
         *         {
         *           "pointer": "#/chainId",
         *           "detail": "/chainId must be a number or a string such as eip155:1, not null"
         *         }
         *       ]
         *     }
         */
        Problem: {
            type: string;
            title: string;
            /** Format: int64 */
            status: number;
            detail?: string;
            /**
             * @description The codes of the API of delivery, and of intents: unknown-intent, invalid-intent, intent-too-large, webhook-url, not-before-too-far,
             *     deadline-passed, intent-settled, intent-canceling, fee-over-ceiling,
             *     fee-raise-too-small, too-many-speed-ups,
             *     halted, target-not-allowed, budget-spent, budget-over-limit,
             *     signer-not-in-pool, target-not-of-signer, intent-not-served,
             *     unknown-webhook, endpoint-disabled, redelivery-too-large,
             *     no-such-signer, unknown-lane, diagnosis-failed,
             *     invalid-webhook-id, foreign-signer, invalid-intent-id.
             */
            code: string;
            reason?: string;
            retryable?: boolean;
            requestId?: string;
            /** @description The faults of the request that have places in it. */
            errors?: components["schemas"]["Fault"][];
        };
    };
    responses: {
        /** @description The reason why the request was not carried out. */
        Problem: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /**
         * @description Too many requests from this client, more intents than an operator's rate allows, or
         *     more than today's budget allows. If items of a batch are refused for such a reason,
         *     the answer has the same headers.
         */
        TooMany: {
            headers: {
                /** @description Seconds. */
                "Retry-After"?: number;
                /** @description The names of limits; of each `r`, the remaining requests, and `t`, the seconds until all requests are available again or, after a refusal, until the retry. */
                RateLimit?: string;
                /** @description The names of limits; of each `q`, the number of requests, and `w`, the window in seconds. */
                "RateLimit-Policy"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: {
        /**
         * @description The intent's `key`, if the body has none; if it has one, both must be equal. An intent of
         *     a list that has no `key` gets this one, `#` and its number in the list, from 0. A key is
         *     1 to 256 bytes from 0x21 to 0x7E, compared byte by byte. A value that begins with a quote
         *     is a string of RFC 8941: the quotes are not part of the key, and `\"` and `\\` stand for a
         *     quote and a backslash (draft-ietf-httpapi-idempotency-key-header-07).
         */
        IdempotencyKey: string;
        /** @description `nextCursor` of the previous page, with the same filters. */
        Cursor: string;
        WebhookId: components["schemas"]["WebhookId"];
        IntentId: components["schemas"]["IntentId"];
        /**
         * @description The milestone to wait for: accepted; assigned, the intent has a nonce; submitted, a node has
         *     taken one of its attempts other than a no-op, so that `attempts` and `firstTxHash` have
         *     hashes; mined, a block contains one of these attempts; completed, it is carried out and the
         *     block is final. All but assigned are milestones of transactions in the API of delivery too.
         */
        Wait: "accepted" | "assigned" | "submitted" | "mined" | "completed";
        /** @description Maximum wait, in seconds or with a unit, at most 55 s; 20 s unless given. */
        Timeout: string;
    };
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type ChainId = components['schemas']['ChainId'];
export type AccountText = components['schemas']['AccountText'];
export type HashText = components['schemas']['HashText'];
export type IdempotencyKey = components['schemas']['IdempotencyKey'];
export type IntentId = components['schemas']['IntentId'];
export type Hash = components['schemas']['Hash'];
export type RpcError = components['schemas']['RpcError'];
export type RpcRequest = components['schemas']['RpcRequest'];
export type RpcCall = components['schemas']['RpcCall'];
export type RpcAnswers = components['schemas']['RpcAnswers'];
export type RpcAnswer = components['schemas']['RpcAnswer'];
export type Address = components['schemas']['Address'];
export type NonceKeyText = components['schemas']['NonceKeyText'];
export type Amount = components['schemas']['Amount'];
export type Data = components['schemas']['Data'];
export type Reason = components['schemas']['Reason'];
export type Status = components['schemas']['Status'];
export type Requests = components['schemas']['Requests'];
export type Request = components['schemas']['Request'];
export type Call = components['schemas']['Call'];
export type Gas = components['schemas']['Gas'];
export type NonceKey = components['schemas']['NonceKey'];
export type Cancel = components['schemas']['Cancel'];
export type SpeedUp = components['schemas']['SpeedUp'];
export type Created = components['schemas']['Created'];
export type Results = components['schemas']['Results'];
export type Taken = components['schemas']['Taken'];
export type Refused = components['schemas']['Refused'];
export type Page = components['schemas']['Page'];
export type Signers = components['schemas']['Signers'];
export type Signer = components['schemas']['Signer'];
export type SignerOnChain = components['schemas']['SignerOnChain'];
export type SignerStatus = components['schemas']['SignerStatus'];
export type LastError = components['schemas']['LastError'];
export type Lanes = components['schemas']['Lanes'];
export type Lane = components['schemas']['Lane'];
export type Diagnosis = components['schemas']['Diagnosis'];
export type Intent = components['schemas']['Intent'];
export type Place = components['schemas']['Place'];
export type Attempt = components['schemas']['Attempt'];
export type Block = components['schemas']['Block'];
export type Receipt = components['schemas']['Receipt'];
export type Stopping = components['schemas']['Stopping'];
export type WaitingFor = components['schemas']['WaitingFor'];
export type Outcome = components['schemas']['Outcome'];
export type Waited = components['schemas']['Waited'];
export type Trail = components['schemas']['Trail'];
export type Event = components['schemas']['Event'];
export type Message = components['schemas']['Message'];
export type MessageRequest = components['schemas']['MessageRequest'];
export type MessageCall = components['schemas']['MessageCall'];
export type MessageState = components['schemas']['MessageState'];
export type MessageReceipt = components['schemas']['MessageReceipt'];
export type StreamedEvent = components['schemas']['StreamedEvent'];
export type Mark = components['schemas']['Mark'];
export type WebhookId = components['schemas']['WebhookId'];
export type GivenUrl = components['schemas']['GivenURL'];
export type Webhook = components['schemas']['Webhook'];
export type WebhooksPage = components['schemas']['WebhooksPage'];
export type Tried = components['schemas']['Tried'];
export type NoticeCause = components['schemas']['NoticeCause'];
export type DeadPage = components['schemas']['DeadPage'];
export type Redelivery = components['schemas']['Redelivery'];
export type Contract = components['schemas']['Contract'];
export type Fault = components['schemas']['Fault'];
export type ProblemKind = components['schemas']['ProblemKind'];
export type Problem = components['schemas']['Problem'];
export type ResponseProblem = components['responses']['Problem'];
export type ResponseTooMany = components['responses']['TooMany'];
export type ParameterIdempotencyKey = components['parameters']['IdempotencyKey'];
export type ParameterCursor = components['parameters']['Cursor'];
export type ParameterWebhookId = components['parameters']['WebhookId'];
export type ParameterIntentId = components['parameters']['IntentId'];
export type ParameterWait = components['parameters']['Wait'];
export type ParameterTimeout = components['parameters']['Timeout'];
export type $defs = Record<string, never>;
export interface operations {
    listIntents: {
        parameters: {
            query?: {
                /** @description Only this client's intents; another client's intents need the scope audit or admin. */
                client?: string;
                chainId?: components["schemas"]["ChainId"];
                /** @description The signer that has signed or will sign the intents; with `key`, the requested signer. */
                signer?: components["schemas"]["AccountText"];
                /** @description The requested pool. */
                pool?: string;
                /** @description The idempotency key. */
                key?: string;
                /** @description The hash of any attempt. */
                hash?: components["schemas"]["HashText"];
                subject?: string;
                /** @description The target of any of the calls. */
                target?: components["schemas"]["Address"];
                /**
                 * @description The first four bytes of the data of any of the calls. Of other clients' intents, an
                 *     auditor finds those with a receipt: until then only the client knows the data.
                 */
                selector?: `0x${string}`;
                /**
                 * @description An entry of the metadata: its name, `=` and its value.
                 * @example order=17
                 */
                metadata?: string;
                /** @description The nonce that the intent has. It needs `signer`. */
                nonce?: number;
                /** @description The nonce key of `nonce`; any, if it is missing. */
                nonceKey?: string;
                /** @description Requested at this time or later, in Unix seconds. */
                since?: number;
                /** @description Requested in this second or earlier, in Unix seconds. */
                until?: number;
                /** @description Intents with any of these statuses match. */
                status?: components["schemas"]["Status"][];
                limit?: number;
                /** @description `nextCursor` of the previous page, with the same filters. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    createIntents: {
        parameters: {
            query?: {
                /**
                 * @description The milestone to wait for: accepted; assigned, the intent has a nonce; submitted, a node has
                 *     taken one of its attempts other than a no-op, so that `attempts` and `firstTxHash` have
                 *     hashes; mined, a block contains one of these attempts; completed, it is carried out and the
                 *     block is final. All but assigned are milestones of transactions in the API of delivery too.
                 */
                wait?: components["parameters"]["Wait"];
                /** @description Maximum wait, in seconds or with a unit, at most 55 s; 20 s unless given. */
                timeout?: components["parameters"]["Timeout"];
            };
            header?: {
                /**
                 * @description The intent's `key`, if the body has none; if it has one, both must be equal. An intent of
                 *     a list that has no `key` gets this one, `#` and its number in the list, from 0. A key is
                 *     1 to 256 bytes from 0x21 to 0x7E, compared byte by byte. A value that begins with a quote
                 *     is a string of RFC 8941: the quotes are not part of the key, and `\"` and `\\` stand for a
                 *     quote and a backslash (draft-ietf-httpapi-idempotency-key-header-07).
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Requests"];
            };
        };
        responses: {
            /** @description The awaited status is reached or can no longer be reached; or no intent of a list was accepted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Created"];
                };
            };
            /** @description The intent is accepted. A list is answered by a list of results, in the order of the request. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Created"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    getIntent: {
        parameters: {
            query?: {
                /**
                 * @description The milestone to wait for: accepted; assigned, the intent has a nonce; submitted, a node has
                 *     taken one of its attempts other than a no-op, so that `attempts` and `firstTxHash` have
                 *     hashes; mined, a block contains one of these attempts; completed, it is carried out and the
                 *     block is final. All but assigned are milestones of transactions in the API of delivery too.
                 */
                wait?: components["parameters"]["Wait"];
                /** @description Maximum wait, in seconds or with a unit, at most 55 s; 20 s unless given. */
                timeout?: components["parameters"]["Timeout"];
            };
            header?: never;
            path: {
                id: components["parameters"]["IntentId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The intent. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Intent"];
                };
            };
            /** @description The intent; a requested wait ended while the status could still be reached. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Intent"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listIntentEvents: {
        parameters: {
            query?: {
                /** @description Only events whose sequence is greater. Excludes cursor. */
                after?: number;
                /** @description `nextCursor` of the previous page, with the same filters. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path: {
                id: components["parameters"]["IntentId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description At most 1000 events, by rising sequence. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Trail"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    cancelIntent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["IntentId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Cancel"];
            };
        };
        responses: {
            /** @description The intent has ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Intent"];
                };
            };
            /** @description The intent is being canceled. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Intent"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    speedUpIntent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["IntentId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SpeedUp"];
            };
        };
        responses: {
            /** @description The intent has ended, and its fee had been raised by at least as much. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Intent"];
                };
            };
            /** @description The next attempt pays at least the requested fee, as far as the relay's ceiling of tips allows. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Intent"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                limit?: number;
                /** @description Only webhooks whose id is greater. Excludes cursor. */
                after?: components["schemas"]["WebhookId"];
                /** @description `nextCursor` of the previous page, with the same filters. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhooksPage"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    ownWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GivenURL"];
            };
        };
        responses: {
            /** @description The webhook, with its secrets. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    tryWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GivenURL"];
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tried"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                endpoint: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook, without its secrets. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listDeadNotices: {
        parameters: {
            query?: {
                limit?: number;
                /** @description With `sequence`, the delivery after which the page begins. Excludes cursor. */
                intent?: components["schemas"]["IntentId"];
                sequence?: number;
                /** @description `nextCursor` of the previous page, with the same filters. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path: {
                endpoint: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadPage"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    redeliverNotices: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                endpoint: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Redelivery"];
            };
        };
        responses: {
            /** @description The command is recorded, and will be carried out. The answer shows the webhook's state before that. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    enableWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                endpoint: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The command is recorded, and will be carried out. The answer shows the webhook's state before that. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    disableWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                endpoint: components["parameters"]["WebhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The command is recorded, and will be carried out. The answer shows the webhook's state before that. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    followEvents: {
        parameters: {
            query?: {
                /** @description Only this intent's events. */
                intent?: components["schemas"]["IntentId"];
                /** @description Only this client's intents; another client's intents need the scope audit or admin. */
                client?: string;
                /** @description Only events whose position is greater; without it, only new events. */
                after?: number;
                /** @description Only events up to this position, or up to the present end of the log (`head`); the stream ends there. */
                until?: string;
            };
            header?: {
                /** @description As `after`, over which it takes precedence. */
                "Last-Event-ID"?: number;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A stream. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                    "application/x-ndjson": components["schemas"]["StreamedEvent"] | components["schemas"]["Mark"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listSigners: {
        parameters: {
            query?: {
                /** @description Only this chain. */
                chainId?: components["schemas"]["ChainId"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The signers and pools. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Signers"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    getSigner: {
        parameters: {
            query?: {
                /** @description Only this chain. */
                chainId?: components["schemas"]["ChainId"];
            };
            header?: never;
            path: {
                address: components["schemas"]["Address"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The signer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Signer"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    listLanes: {
        parameters: {
            query?: {
                /** @description Only this chain. */
                chainId?: components["schemas"]["ChainId"];
                signer?: components["schemas"]["Address"];
                /** @description The process that opened the lane last. */
                holder?: string;
                /** @description Whether a nonce is in flight. */
                busy?: boolean;
                limit?: number;
                /** @description `nextCursor` of the previous page, with the same filters. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lanes"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    getLane: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                chain: components["schemas"]["ChainId"];
                /** @description The signer. */
                address: components["schemas"]["Address"];
                /**
                 * @description The nonce key; `0x0` is the account's default sequence.
                 * @example 0x0
                 */
                nonceKey: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lane. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lane"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    diagnoseLane: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                chain: components["schemas"]["ChainId"];
                /** @description The signer. */
                address: components["schemas"]["Address"];
                /**
                 * @description The nonce key; `0x0` is the account's default sequence.
                 * @example 0x0
                 */
                nonceKey: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The diagnosis. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Diagnosis"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    rpc: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RpcRequest"];
            };
        };
        responses: {
            /** @description An answer. For a batch, one answer for each call that is not a notification, in order. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RpcAnswers"];
                };
            };
            /** @description All calls were notifications. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    rpcOfChain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                chainId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RpcRequest"];
            };
        };
        responses: {
            /** @description An answer. For a batch, one answer for each call that is not a notification, in order. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RpcAnswers"];
                };
            };
            /** @description All calls were notifications. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    rpcOfPool: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                chainId: string;
                pool: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RpcRequest"];
            };
        };
        responses: {
            /** @description An answer. For a batch, one answer for each call that is not a notification, in order. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RpcAnswers"];
                };
            };
            /** @description All calls were notifications. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["Problem"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
        };
    };
    getContract: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This document. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/yaml": string;
                };
            };
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
        };
    };
    getContractJson: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The contract as JSON. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Contract"];
                };
            };
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
        };
    };
    getDocs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page that loads no other resource. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
        };
    };
    getProblem: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                code: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The code's row in the table of problems. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProblemKind"];
                    "text/html": string;
                };
            };
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
        };
    };
}
