// Made from api/openapi.yaml by go test ./clients/typescript -update. Do not edit.

export interface paths {
    "/v1/transactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List transactions, newest first
         * @description Lists the transactions that the client may read, in the order of their acceptance,
         *     newest first. A transaction that was accepted a moment ago may be missing; a request
         *     by its hash finds it at once. While the read model of owners is being built the
         *     answer is `catching-up` (503).
         */
        get: operations["listTransactions"];
        put?: never;
        /**
         * Submit signed transactions
         * @description Each transaction has its result in its place. A refused transaction does not affect
         *     the others. A transaction is identified by its hash: submitting it again, also after
         *     an answer was lost, returns the existing transaction and adds nothing. A result with
         *     `ok` is durable.
         *
         *     With `wait` the answer comes when every accepted transaction has reached that status
         *     or can no longer reach it, or the timeout is over. If the wait ends early, the
         *     answer has status 202 and `waited` gives the reason. That is no failure: the
         *     transactions are accepted.
         */
        post: operations["submitTransactions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transactions/{hash}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a transaction with its schedule, attempts and receipt
         * @description With `wait` the answer comes when the transaction has reached that status or can no
         *     longer reach it, or the timeout is over. The answer is always 200 with the
         *     transaction's state at that time; `waited` gives the reason.
         *
         *     Without `wait` the answer has an `ETag`. It changes with every recorded event that
         *     the client may see. It is weak: values that are counted between two events
         *     (attempts, note, nextActionAt, lastBroadcastAt, parked, waitingForNonce,
         *     waitingSince) may change without it.
         *
         *     Until a node may have the signed bytes, their contents (gas, fees, calls) are shown
         *     to the owners alone.
         */
        get: operations["getTransaction"];
        put?: never;
        post?: never;
        /**
         * Record that a transaction's nonce is used up
         * @description For an owner who has used the nonce for something else. The service asks the chain,
         *     as of one block: for the receipt, then for the current nonce of the transaction's
         *     nonce key. If that nonce is past the transaction's nonce, the transaction is
         *     `stale_by_nonce`; a repeated request returns the same and records nothing more. If
         *     it is not, `nonce-still-current` (400) names both nonces. `already-settled` (409)
         *     says how the transaction ended otherwise: a transaction that turns out to be mined
         *     is recorded as executed, and the answer says so. Another client's transaction is
         *     404, unless the key has the scope `admin` too.
         */
        delete: operations["markTransactionStale"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/transactions/{hash}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the recorded events of a transaction, oldest first
         * @description The answer hides from a client that other clients submitted the same transaction:
         *     their submissions are left out and not counted in versions, and names, keys and
         *     request ids of other clients are removed. The scope `audit` reads the events as
         *     recorded.
         */
        get: operations["getTransactionEvents"];
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
         * Call JSON-RPC of the only chain
         * @description As /rpc/{chainId}, if the service serves one chain. If it serves several chains,
         *     every call is answered with an error that names them.
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
         * Call JSON-RPC as on a node of the chain
         * @description JSON-RPC 2.0 for wallets and libraries. A transaction sent with
         *     eth_sendRawTransaction is accepted as by POST /v1/transactions; reads are passed on
         *     to a node. docs/reference/jsonrpc.md describes the methods, the errors and the differences
         *     from a node. Members of a call that JSON-RPC does not know are ignored.
         */
        post: operations["rpcOfChain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/senders/{sender}/groups/{groupId}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a group
         * @description Members that have not ended are sent no more, and their signed bytes are erased; all
         *     other data stays. The cancel covers the members that the group has when the request
         *     arrives: a transaction that is submitted to the group later is not canceled, nor is
         *     one that did not join because the group had 100,000 members. The
         *     chain is not touched: anybody who has the bytes can still have them mined, and a
         *     mined member is `executed`.
         *
         *     The owner authorizes the cancel by one of
         *
         *     - typed data (EIP-712), in the body: it names chain, deployment, group and expiry,
         *       and counts once;
         *     - a signature over keccak256 of the group's id, in `Authorization: Signature 0x…`,
         *       with an empty body. It counts once for a group, names no deployment, and may be
         *       switched off.
         *
         *     Both take a primitive signature (Tempo's term) by the sender's own key: 65 bytes of
         *     secp256k1, or 0x01 and 129 bytes of P-256, or 0x02 and the bytes of WebAuthn.
         *     docs/howto/cancel.md has the details. A repeated request answers for the same members and
         *     records nothing more.
         *
         *     The signature is the account's: it stops all members, including members that other
         *     clients submitted. The answer lists the client's own members and counts all of them.
         */
        post: operations["cancelGroup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/senders/{sender}/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a sender's groups, newest first
         * @description A group is the transactions of one sender that share a nonce key, on one chain. A
         *     client sees its own members alone, and the groups that have such members. Groups are
         *     ordered by the time when their first members joined, newest first. A group has at most
         *     100,000 members; later transactions are in no group. The answer covers every member
         *     that was accepted before the request; if the read models are too far behind for that,
         *     the answer is `catching-up` (503). A member whose access key was confirmed a moment
         *     ago may be missing.
         */
        get: operations["listGroups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/senders/{sender}/groups/{groupId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a group with its members and its cancel plan
         * @description Lists members by rising nonce, a page at a time. A client sees its own members
         *     alone, and times and the cancel plan cover these. A key that is bound to the sender
         *     and the scope `audit` see all members. A member whose predecessor is missing shows
         *     the nonce that the chain waits for, and since when. The cancel plan lists the nonces
         *     that the owner has to use up on chain, so that the signed transactions become
         *     worthless to everybody who has them. `ambiguous-chain` (400) names the chains when
         *     the sender has this group on several.
         */
        get: operations["getGroup"];
        put?: never;
        post?: never;
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
         * Stream events as they are recorded, until the client disconnects
         * @description Events of transactions and groups, in the order of their positions, as server-sent
         *     events; or as lines of JSON, with `Accept: application/x-ndjson`. Every event has
         *     the form that it has in an audit trail, and names its stream. Server-sent events
         *     have no type, so that one handler (`onmessage`) gets all of them; their id is the
         *     position.
         *
         *     A stream begins after `Last-Event-ID` or `after`, or with the next event. A client
         *     that continues after the last position it has seen misses nothing and gets nothing
         *     twice; a browser's EventSource does so by itself. Between events, at least every 15
         *     seconds, the service sends marks: a mark is a position up to which no requested
         *     event is missing. As a server-sent event a mark is an id without data, which
         *     browsers remember and do not show; as a line it is `{"position": 123}`.
         *
         *     If a client does not receive sent data within 10 seconds, its stream is cut. Every
         *     stream ends when the process stops: connect again and continue. A stream also ends
         *     when its API key is revoked or expires; nothing more is sent then.
         *
         *     With `until` a stream has an end. When every event up to there was sent, the service
         *     sends a line that is a mark with `"end": true`, or a server-sent event of the type
         *     `end`, and closes the stream. A client that gets no such end was cut, and continues
         *     after the last position.
         *
         *     The filters narrow the stream to the events that match all of them. `sender` and
         *     `groupId` of a transaction are its values at acceptance, for all of its events.
         *
         *     With every filter, a client sees only the events of its own transactions. If another
         *     client had submitted the same transaction before, the client sees the events from
         *     its own submission on. Of a group a client sees that its own transactions joined,
         *     and its own cancels, without `version`: it would count the members of others. The
         *     scope `audit` follows all events as recorded.
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
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show status, version, effective settings, dependencies, nodes and readers
         * @description Answers without a key. From the first API key on, `endpoints`, `heads` and `readers`
         *     are shown only to requests with a key that has the scope `read` or `audit`.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/livez": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Report that the process runs */
        get: operations["getLive"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Report that the process is ready for requests */
        get: operations["getReady"];
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
        /** @example 0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d */
        Hash: `0x${string}`;
        /** @example 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 */
        Address: `0x${string}`;
        /** @example 0x5e2f91ab5e2f91ab5e2f91ab5e2f91ab */
        GroupId: `0x${string}`;
        /**
         * @description Minimal hex.
         * @example 0x0
         */
        NonceKey: `0x${string}`;
        /** @example 20000000000 */
        Decimal: string;
        /**
         * Format: uint64
         * @example 7
         */
        Uint64: number;
        /**
         * Format: int64
         * @description Unix seconds.
         * @example 1795230000
         */
        Time: number;
        /**
         * @description queued → broadcasting ⇄ retry_scheduled → executed, stale_by_nonce or expired,
         *     each final once `finalized` is true; or invalid, or canceled_locally.
         * @example queued
         * @enum {string}
         */
        Status: "queued" | "broadcasting" | "retry_scheduled" | "executed" | "stale_by_nonce" | "expired" | "invalid" | "canceled_locally";
        /**
         * @example {
         *       "chainId": 42431,
         *       "transactions": [
         *         "0x76f8b1"
         *       ]
         *     }
         */
        Submission: {
            chainId: components["schemas"]["ChainId"];
            transactions: `0x${string}`[];
        };
        /**
         * @example {
         *       "results": [
         *         {
         *           "ok": true,
         *           "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *           "sender": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *           "nonceKey": "0x0",
         *           "nonce": 7,
         *           "eligibleAt": 1795230000,
         *           "status": "queued",
         *           "alreadyKnown": false
         *         }
         *       ]
         *     }
         */
        Results: {
            results: (components["schemas"]["Taken"] | components["schemas"]["Validated"] | components["schemas"]["Refused"])[];
        };
        Taken: {
            /** @constant */
            ok: true;
            txHash: components["schemas"]["Hash"];
            sender: components["schemas"]["Address"];
            nonceKey: components["schemas"]["NonceKey"];
            nonce: number | bigint;
            groupId?: components["schemas"]["GroupId"];
            eligibleAt: components["schemas"]["Time"];
            expiresAt?: components["schemas"]["Time"];
            status: components["schemas"]["Status"];
            /** @description The client had submitted it before. */
            alreadyKnown: boolean;
            /** @description The verdict's block can no longer leave the chain. */
            finalized?: boolean;
            block?: components["schemas"]["Block"];
            receipt?: components["schemas"]["Receipt"];
            waited?: components["schemas"]["Waited"];
        };
        /** @description The result for a transaction that was only validated; it is not accepted. */
        Validated: {
            /** @constant */
            ok: true;
            /** @constant */
            validateOnly: true;
            txHash: components["schemas"]["Hash"];
            sender: components["schemas"]["Address"];
            nonceKey: components["schemas"]["NonceKey"];
            nonce: number | bigint;
            groupId?: components["schemas"]["GroupId"];
            eligibleAt: components["schemas"]["Time"];
            expiresAt?: components["schemas"]["Time"];
            /** @description Only for a transaction that was accepted at another time. */
            status?: components["schemas"]["Status"];
            /** @description The client had submitted it before, or it is in the request twice. */
            alreadyKnown: boolean;
            finalized?: boolean;
            block?: components["schemas"]["Block"];
            receipt?: components["schemas"]["Receipt"];
        };
        /** @description The result of the wait. */
        Waited: {
            /** @enum {string} */
            for: "accepted" | "submitted" | "mined" | "completed" | "broadcast" | "executed" | "final";
            reached: boolean;
            /**
             * @description Why the status is not reached. ended: the transaction ended otherwise, see
             *     status. timeout: not yet. stopping, busy, unavailable: this process could not
             *     continue to wait.
             * @enum {unknown}
             */
            because?: "ended" | "timeout" | "stopping" | "busy" | "unavailable";
        };
        Refused: {
            /** @constant */
            ok: false;
            problem: components["schemas"]["Problem"];
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
            /** @description A relative reference to the page of the code, which explains it: `/problems/` and the code. */
            type: string;
            title: string;
            /** Format: int64 */
            status: number;
            detail?: string;
            /** @description Never changes; see docs/reference/problems.md. */
            code: string;
            /** @description The fault in the bytes of a transaction. */
            reason?: string;
            /** @description The same request may succeed later. */
            retryable?: boolean;
            requestId?: string;
            /** @description The faults of the request that have places in it. */
            errors?: components["schemas"]["Fault"][];
        };
        /**
         * @example {
         *       "transactions": [
         *         {
         *           "chainId": 42431,
         *           "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *           "type": 118,
         *           "sender": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *           "signature": "secp256k1",
         *           "nonceKey": "0x0",
         *           "nonce": 7,
         *           "eligibleAt": 1795230000,
         *           "status": "executed",
         *           "finalized": true,
         *           "attempts": 1,
         *           "attemptsSummary": [
         *             {
         *               "outcome": "taken",
         *               "attempt": 1
         *             }
         *           ],
         *           "block": {
         *             "number": 184,
         *             "hash": "0xa07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453",
         *             "time": 1795230007
         *           },
         *           "receipt": {
         *             "blockNumber": 184,
         *             "blockHash": "0xa07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453",
         *             "transactionIndex": 0,
         *             "status": 1,
         *             "gasUsed": 50000,
         *             "effectiveGasPrice": "20000000000"
         *           },
         *           "acceptedAt": 1795230000,
         *           "updatedAt": 1795230009,
         *           "version": 4,
         *           "gas": 50000,
         *           "fees": {
         *             "maxFeePerGas": "20000000000",
         *             "maxPriorityFeePerGas": "0"
         *           },
         *           "calls": [
         *             {
         *               "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
         *               "value": "0",
         *               "input": "0x"
         *             }
         *           ]
         *         }
         *       ],
         *       "hasMore": false
         *     }
         */
        Page: {
            transactions: components["schemas"]["Transaction"][];
            /** @description Continues the list. A page may have fewer rows than `limit`, or none, and still have a cursor: the request then read many rows that the filter excludes. */
            nextCursor?: string;
            hasMore: boolean;
        };
        /**
         * @example {
         *       "chainId": 42431,
         *       "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *       "type": 118,
         *       "sender": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *       "signature": "secp256k1",
         *       "nonceKey": "0x0",
         *       "nonce": 7,
         *       "eligibleAt": 1795230000,
         *       "status": "executed",
         *       "finalized": true,
         *       "attempts": 1,
         *       "attemptsSummary": [
         *         {
         *           "outcome": "taken",
         *           "attempt": 1
         *         }
         *       ],
         *       "block": {
         *         "number": 184,
         *         "hash": "0xa07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453",
         *         "time": 1795230007
         *       },
         *       "receipt": {
         *         "blockNumber": 184,
         *         "blockHash": "0xa07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453",
         *         "transactionIndex": 0,
         *         "status": 1,
         *         "gasUsed": 50000,
         *         "effectiveGasPrice": "20000000000"
         *       },
         *       "acceptedAt": 1795230000,
         *       "updatedAt": 1795230009,
         *       "version": 4,
         *       "gas": 50000,
         *       "fees": {
         *         "maxFeePerGas": "20000000000",
         *         "maxPriorityFeePerGas": "0"
         *       },
         *       "calls": [
         *         {
         *           "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
         *           "value": "0",
         *           "input": "0x"
         *         }
         *       ]
         *     }
         */
        Transaction: {
            chainId: components["schemas"]["Uint64"];
            txHash: components["schemas"]["Hash"];
            /**
             * Format: int64
             * @description The transaction type, EIP-2718: 118 (0x76) is Tempo's.
             */
            type: number;
            sender: components["schemas"]["Address"];
            /** @enum {unknown} */
            signature: "secp256k1" | "p256" | "webauthn" | "keychain";
            accessKey?: components["schemas"]["Address"];
            feePayer?: components["schemas"]["Address"];
            nonceKey: components["schemas"]["NonceKey"];
            nonce: number | bigint;
            /** @description The group of the nonce key. A group that has 100,000 members does not list the transaction. */
            groupId?: components["schemas"]["GroupId"];
            groupPending?: components["schemas"]["GroupPending"];
            nonceKeyInfo?: components["schemas"]["NonceKeyInfo"];
            validAfter?: components["schemas"]["Time"];
            validBefore?: components["schemas"]["Time"];
            eligibleAt: components["schemas"]["Time"];
            expiresAt?: components["schemas"]["Time"];
            status: components["schemas"]["Status"];
            /** @description The verdict's block can no longer leave the chain. */
            finalized: boolean;
            /** @description Canceled by its owner; the chain may still contain it. */
            canceled?: boolean;
            /** @description The chain contradicted a final verdict; an operator must investigate. */
            violated?: boolean;
            /** @description The signed bytes are erased. */
            payloadErased?: boolean;
            nextActionAt?: components["schemas"]["Time"];
            /** @description Too many open transactions with lower nonces come first. */
            parked?: boolean;
            waitingForNonce?: number | bigint;
            waitingSince?: components["schemas"]["Time"];
            /** @description On hold since then: a node answered that the fee payer cannot pay or the access key is not authorised. Of the client's transactions with that payer and key, one at a time is sent as a probe. */
            accountHeldAt?: components["schemas"]["Time"];
            /**
             * Format: int64
             * @description Broadcast attempts begun, including unrecorded attempts.
             */
            attempts: number;
            /** @description Outcomes of the attempts, each with the last attempt at which it was recorded. */
            attemptsSummary: components["schemas"]["Outcome"][];
            lastAttempt?: components["schemas"]["Attempt"];
            lastBroadcastAt?: components["schemas"]["Time"];
            /** @description Outcome of the last recorded attempt if no node accepted the bytes. */
            lastError?: string;
            /** @description Outcome of the last attempt, recorded or not. */
            note?: string;
            block?: components["schemas"]["Block"];
            receipt?: components["schemas"]["Receipt"];
            acceptedAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            version: components["schemas"]["Uint64"];
            gas?: number | bigint;
            fees?: components["schemas"]["Fees"];
            calls?: components["schemas"]["Call"][];
            waited?: components["schemas"]["Waited"];
        };
        /**
         * @example {
         *       "chainId": 42431,
         *       "groupId": "0x5e2f91ab5e2f91ab5e2f91ab5e2f91ab",
         *       "nonceKey": "0x8400000000000000000000000000000000000000000000000000000000000001",
         *       "startAt": 1795230000,
         *       "endAt": 1797822000,
         *       "nextPaymentAt": 1795230000
         *     }
         */
        ListedGroup: {
            chainId: components["schemas"]["Uint64"];
            groupId: components["schemas"]["GroupId"];
            nonceKey: components["schemas"]["NonceKey"];
            display?: components["schemas"]["NonceKeyInfo"];
            startAt: components["schemas"]["Time"];
            endAt: components["schemas"]["Time"];
            nextPaymentAt?: components["schemas"]["Time"];
        };
        /**
         * @example {
         *       "groups": [
         *         {
         *           "chainId": 42431,
         *           "groupId": "0x5e2f91ab5e2f91ab5e2f91ab5e2f91ab",
         *           "nonceKey": "0x8400000000000000000000000000000000000000000000000000000000000001",
         *           "startAt": 1795230000,
         *           "endAt": 1797822000,
         *           "nextPaymentAt": 1795230000
         *         }
         *       ],
         *       "hasMore": false
         *     }
         */
        GroupsPage: {
            groups: components["schemas"]["ListedGroup"][];
            /** @description Continues the list. */
            nextCursor?: string;
            hasMore: boolean;
        };
        /**
         * @description startAt and endAt are the members' smallest and largest eligibleAt. nextPaymentAt is
         *     the smallest eligibleAt of the members that have not ended; it is left out when all
         *     have ended.
         * @example {
         *       "chainId": 42431,
         *       "groupId": "0x5e2f91ab5e2f91ab5e2f91ab5e2f91ab",
         *       "nonceKey": "0x8400000000000000000000000000000000000000000000000000000000000001",
         *       "startAt": 1795230000,
         *       "endAt": 1797822000,
         *       "nextPaymentAt": 1795230000,
         *       "sender": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *       "members": [
         *         {
         *           "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *           "nonceKey": "0x8400000000000000000000000000000000000000000000000000000000000001",
         *           "nonce": 0,
         *           "status": "queued",
         *           "finalized": false,
         *           "eligibleAt": 1795230000
         *         }
         *       ],
         *       "cancelPlan": {
         *         "nonceKey": "0x8400000000000000000000000000000000000000000000000000000000000001",
         *         "nonces": [
         *           0
         *         ],
         *         "currentNonce": 0,
         *         "alreadyInvalidated": false
         *       },
         *       "hasMore": false
         *     }
         */
        Group: {
            chainId: components["schemas"]["Uint64"];
            sender: components["schemas"]["Address"];
            groupId: components["schemas"]["GroupId"];
            nonceKey: components["schemas"]["NonceKey"];
            display?: components["schemas"]["NonceKeyInfo"];
            startAt: components["schemas"]["Time"];
            endAt: components["schemas"]["Time"];
            nextPaymentAt?: components["schemas"]["Time"];
            members: components["schemas"]["GroupMember"][];
            /** @description Continues the list of members. */
            nextCursor?: string;
            hasMore: boolean;
            cancelPlan: components["schemas"]["CancelPlan"];
        };
        /** @description Transaction describes the fields. */
        GroupMember: {
            txHash: components["schemas"]["Hash"];
            nonceKey: components["schemas"]["NonceKey"];
            nonce: number | bigint;
            status: components["schemas"]["Status"];
            finalized: boolean;
            canceled?: boolean;
            eligibleAt: components["schemas"]["Time"];
            expiresAt?: components["schemas"]["Time"];
            nextActionAt?: components["schemas"]["Time"];
            parked?: boolean;
            waitingForNonce?: number | bigint;
            waitingSince?: components["schemas"]["Time"];
        };
        CancelPlan: {
            nonceKey: components["schemas"]["NonceKey"];
            /**
             * @description The members' nonces, rising. Other transactions must use up all of them, and the
             *     nonces in between. Empty for the expiring nonce key.
             */
            nonces: (number | bigint)[];
            /** @description There are more nonces; these are the highest 10000. */
            truncated?: boolean;
            /** @description The nonce key's next nonce on the chain, as of its newest block; null when it is not known. */
            currentNonce: (number | bigint) | null;
            /** @description The chain is past all of these nonces; null when that is not known. */
            alreadyInvalidated: boolean | null;
            /** @description Why the nonce is not known. */
            reason?: string;
        };
        /**
         * @description An access key signed, and the chain's AccountKeychain has not confirmed the key's
         *     authorization. So the sender is only claimed, and the transaction is in no group.
         *     The service asks the chain again, because a later transaction may authorize the key.
         */
        GroupPending: {
            reason: string;
            since: components["schemas"]["Time"];
        };
        /** @description The parts of a nonce key of the explicit grouping format. */
        NonceKeyInfo: {
            kind: string;
            scope: string;
            group: string;
            memo: string;
        };
        Outcome: {
            outcome: string;
            /** Format: int32 */
            attempt: number;
        };
        /** @description The last recorded attempt. */
        Attempt: {
            /** Format: int32 */
            attempt: number;
            at: components["schemas"]["Time"];
            answers: components["schemas"]["Answer"][];
        };
        Answer: {
            endpoint: string;
            /** @enum {unknown} */
            class: "taken" | "known" | "retry" | "permanent" | "unknown";
            cause?: string;
            /** Format: int64 */
            code?: number;
            /** @description The node's message, cut at 512 bytes. */
            message?: string;
            /** Format: int32 */
            ms: number;
        };
        /** @description The block on which the verdict is based. */
        Block: {
            number: components["schemas"]["Uint64"];
            hash: components["schemas"]["Hash"];
            time: components["schemas"]["Time"];
        };
        Receipt: {
            blockNumber: components["schemas"]["Uint64"];
            blockHash: components["schemas"]["Hash"];
            transactionIndex: components["schemas"]["Uint64"];
            /**
             * @description 0 is reverted.
             * @enum {unknown}
             */
            status: 0 | 1;
            gasUsed: components["schemas"]["Uint64"];
            effectiveGasPrice?: components["schemas"]["Decimal"];
            feePayer?: components["schemas"]["Address"];
            feeToken?: components["schemas"]["Address"];
        };
        /** @description Prices of one unit of gas. */
        Fees: {
            gasPrice?: components["schemas"]["Decimal"];
            maxFeePerGas?: components["schemas"]["Decimal"];
            maxPriorityFeePerGas?: components["schemas"]["Decimal"];
            feeToken?: components["schemas"]["Address"];
        };
        Call: {
            to?: components["schemas"]["Address"];
            value: components["schemas"]["Decimal"];
            input: string;
        };
        /**
         * @example {
         *       "expires": 1795233600,
         *       "signature": "0x1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111"
         *     }
         */
        TypedCancel: {
            /**
             * Format: int64
             * @description Unix seconds, at most 24 hours ahead; it is signed too.
             */
            expires: number;
            signature: string;
        };
        /**
         * @example {
         *       "chainId": 42431,
         *       "sender": "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
         *       "groupId": "0x5e2f91ab5e2f91ab5e2f91ab5e2f91ab",
         *       "nonceKey": "0x8400000000000000000000000000000000000000000000000000000000000001",
         *       "canceled": 1,
         *       "members": [
         *         {
         *           "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *           "nonce": 0,
         *           "status": "canceled_locally",
         *           "canceled": true,
         *           "payloadErased": true
         *         }
         *       ]
         *     }
         */
        CanceledGroup: {
            chainId: components["schemas"]["Uint64"];
            sender: components["schemas"]["Address"];
            groupId: components["schemas"]["GroupId"];
            nonceKey: components["schemas"]["NonceKey"];
            /**
             * Format: int64
             * @description How many of the members are canceled, other clients' members included.
             */
            canceled: number;
            /** @description The client's own members. */
            members: components["schemas"]["CanceledMember"][];
        };
        CanceledMember: {
            txHash: components["schemas"]["Hash"];
            nonce: number | bigint;
            status: components["schemas"]["Status"];
            /** @description False for a member that had ended before. */
            canceled: boolean;
            payloadErased: boolean;
        };
        /**
         * @example {
         *       "chainId": 42431,
         *       "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *       "events": [
         *         {
         *           "id": "0c8d0f0e-7c1e-4a5b-9c3f-0d4f5b8b2a11",
         *           "name": "tx.mined.v1",
         *           "version": 3,
         *           "position": 1204,
         *           "at": "2026-11-20T08:00:07.123Z",
         *           "data": {
         *             "block": {
         *               "number": 184,
         *               "hash": "0xa07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453",
         *               "time": 1795230007
         *             }
         *           },
         *           "meta": {
         *             "correlation": "0c8d0f0e-7c1e-4a5b-9c3f-0d4f5b8b2a11",
         *             "actor": "watcher"
         *           }
         *         }
         *       ],
         *       "hasMore": false
         *     }
         */
        Trail: {
            chainId: components["schemas"]["Uint64"];
            txHash: components["schemas"]["Hash"];
            events: components["schemas"]["Event"][];
            /** @description Continues the list. */
            nextCursor?: string;
            hasMore: boolean;
        };
        Event: {
            /** Format: uuid */
            id: string;
            name: string;
            version: components["schemas"]["Uint64"];
            position: components["schemas"]["Uint64"];
            /** Format: date-time */
            at: string;
            /** @description As recorded. */
            data: unknown;
            meta: components["schemas"]["Meta"];
        };
        /**
         * @example {
         *       "id": "0c8d0f0e-7c1e-4a5b-9c3f-0d4f5b8b2a11",
         *       "name": "tx.mined.v1",
         *       "version": 3,
         *       "position": 1204,
         *       "at": "2026-11-20T08:00:07.123Z",
         *       "data": {
         *         "block": {
         *           "number": 184,
         *           "hash": "0xa07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453a07e4453",
         *           "time": 1795230007
         *         }
         *       },
         *       "meta": {
         *         "correlation": "0c8d0f0e-7c1e-4a5b-9c3f-0d4f5b8b2a11",
         *         "actor": "watcher"
         *       },
         *       "stream": "tx-42431-0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *       "chainId": 42431,
         *       "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d"
         *     }
         */
        FollowedEvent: {
            /** Format: uuid */
            id: string;
            name: string;
            /** @description Not in events of a group of which the client sees only its own members. */
            version?: components["schemas"]["Uint64"];
            position: components["schemas"]["Uint64"];
            /** Format: date-time */
            at: string;
            /** @description As recorded. */
            data: unknown;
            meta: components["schemas"]["Meta"];
            stream: string;
            chainId: components["schemas"]["Uint64"];
            /** @description Only in events of transactions. */
            txHash?: components["schemas"]["Hash"];
            /** @description Only in events of groups. */
            sender?: components["schemas"]["Address"];
            /** @description Only in events of groups. */
            groupId?: components["schemas"]["GroupId"];
            /** @description Only in events of transactions and with `include`. */
            transaction?: components["schemas"]["TransactionState"];
        };
        /**
         * @description A transaction's state right after one of its events.
         * @example {
         *       "chainId": 42431,
         *       "txHash": "0x1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d1f6b2c9d",
         *       "sender": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
         *       "nonceKey": "0x0",
         *       "nonce": 7,
         *       "eligibleAt": 1795230000,
         *       "status": "broadcasting",
         *       "finalized": false,
         *       "attempts": 1
         *     }
         */
        TransactionState: {
            chainId: components["schemas"]["Uint64"];
            txHash: components["schemas"]["Hash"];
            sender: components["schemas"]["Address"];
            feePayer?: components["schemas"]["Address"];
            nonceKey: string;
            nonce: number | bigint;
            /** @description Absent while the sender is only claimed. */
            groupId?: components["schemas"]["GroupId"];
            eligibleAt: components["schemas"]["Uint64"];
            expiresAt?: components["schemas"]["Uint64"];
            status: components["schemas"]["Status"];
            /** @description The verdict's block is final. */
            finalized: boolean;
            /** @description The block on which the verdict rests. */
            block?: components["schemas"]["StateBlock"];
            receipt?: {
                block: components["schemas"]["StateBlock"];
                index: components["schemas"]["Uint64"];
                /** @description 1, or 0 if the transaction reverted. */
                status: components["schemas"]["Uint64"];
                gasUsed: components["schemas"]["Uint64"];
                effectiveGasPrice?: string;
                feePayer?: components["schemas"]["Address"];
                feeToken?: components["schemas"]["Address"];
            };
            /**
             * Format: int64
             * @description The last recorded broadcast attempt.
             */
            attempts: number;
            /** @description The owner has canceled sending. */
            canceled?: boolean;
        };
        StateBlock: {
            number: components["schemas"]["Uint64"];
            hash: components["schemas"]["Hash"];
            /** @description The hash of the block before it */
            parent?: components["schemas"]["Hash"];
            time: components["schemas"]["Uint64"];
        };
        /**
         * @example {
         *       "position": 1204
         *     }
         */
        Mark: {
            position: components["schemas"]["Uint64"];
            /** @description The stream is complete and ends here. */
            end?: boolean;
        };
        Meta: {
            /** Format: uuid */
            correlation?: string;
            /** Format: uuid */
            causation?: string;
            actor?: string;
            trace?: string;
            /** @description SHA-256 over this event and the link of the previous event in its stream. Only for the scope `audit`, or if there are no keys. */
            link?: string;
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
         * @example {
         *       "status": "ok"
         *     }
         */
        Probe: {
            status: string;
        };
        /**
         * @example {
         *       "status": "ok",
         *       "service": "watchtower",
         *       "version": "0.2.0",
         *       "build": {},
         *       "now": 1795230000,
         *       "startedAt": 1795140000,
         *       "uptimeSeconds": 90000,
         *       "chains": [
         *         42431
         *       ],
         *       "rpcEndpoints": 2,
         *       "scheduler": {
         *         "pollIntervalMs": 250,
         *         "leaseTtlSeconds": 3,
         *         "maxConcurrency": 256,
         *         "retryMinMs": 250,
         *         "retryMaxMs": 5000,
         *         "expirySoonWindowSeconds": 60,
         *         "expirySoonRetryMaxMs": 500
         *       },
         *       "watcher": {
         *         "pollIntervalMs": 500,
         *         "useWebsocket": false
         *       },
         *       "broadcaster": {
         *         "fanout": 2,
         *         "timeoutMs": 2000
         *       },
         *       "api": {
         *         "maxBodyBytes": 1048576
         *       },
         *       "dependencies": {
         *         "database": {
         *           "ok": true
         *         }
         *       }
         *     }
         */
        Health: {
            /** @enum {unknown} */
            status: "ok" | "degraded";
            service: string;
            version: string;
            build: {
                gitSha?: string;
                buildTimestamp?: string;
            };
            now: components["schemas"]["Time"];
            startedAt: components["schemas"]["Time"];
            /** Format: int64 */
            uptimeSeconds: number;
            chains: components["schemas"]["Uint64"][];
            /** @description The deployment's name in the typed data that cancels a group. */
            deployment?: string;
            /** Format: int32 */
            rpcEndpoints: number;
            scheduler: {
                /** Format: int64 */
                pollIntervalMs: number;
                /** Format: double */
                leaseTtlSeconds: number;
                /** Format: int32 */
                maxConcurrency: number;
                /** Format: int64 */
                retryMinMs: number;
                /** Format: int64 */
                retryMaxMs: number;
                /** Format: double */
                expirySoonWindowSeconds: number;
                /** Format: int64 */
                expirySoonRetryMaxMs: number;
            };
            watcher: {
                /** Format: int64 */
                pollIntervalMs: number;
                useWebsocket: boolean;
            };
            broadcaster: {
                /** Format: int32 */
                fanout: number;
                /** Format: int64 */
                timeoutMs: number;
            };
            api: {
                /** Format: int64 */
                maxBodyBytes: number;
            };
            dependencies: {
                database: components["schemas"]["Dependency"];
                redis?: components["schemas"]["Dependency"];
            };
            endpoints?: components["schemas"]["Endpoint"][];
            heads?: components["schemas"]["Head"][];
            readers?: components["schemas"]["Reader"][];
        };
        Dependency: {
            ok: boolean;
        };
        /** @description The state of one node, as seen by the process that answers. The node's URL, which may contain a key, is never shown. */
        Endpoint: {
            chainId: components["schemas"]["Uint64"];
            name: string;
            /** @description The endpoint is in rotation. */
            healthy: boolean;
            /**
             * Format: double
             * @description By latency, error rate, head lag and honesty, from 0 to 1; higher is better.
             */
            score: number;
            head: components["schemas"]["Uint64"];
            /**
             * @description unverified has not shown yet which chain it serves; foreign serves another chain; tripped fails too often; distrusted has contradicted itself or most other endpoints; limited has used up its budget or asked for a pause; lagging is too many blocks behind; leading is alone too many blocks ahead.
             * @enum {unknown}
             */
            state: "healthy" | "unverified" | "foreign" | "tripped" | "distrusted" | "limited" | "lagging" | "leading";
            /** @enum {unknown} */
            breaker: "closed" | "half-open" | "open";
            /** @description The chain is read from this endpoint. */
            reading: boolean;
            lag: components["schemas"]["Uint64"];
            lead: components["schemas"]["Uint64"];
            /**
             * Format: double
             * @description Moving average.
             */
            latencyMs: number;
            /**
             * Format: double
             * @description Moving average of the share of failed calls.
             */
            errorRate: number;
            /** Format: int32 */
            inFlight: number;
            /** Format: int32 */
            maxInFlight: number;
            /** @description The endpoint's budget of calls per second; absent without a limit. */
            rate?: {
                /** Format: double */
                perSecond: number;
                /** Format: int32 */
                burst: number;
                /** Format: double */
                left: number;
            };
            /** @description The endpoint's budget of calls per day of UTC; absent without a limit. */
            daily?: {
                /** Format: int64 */
                calls: number;
                /** Format: int64 */
                left: number;
            };
            /**
             * Format: int64
             * @description Number of times that the circuit breaker has opened.
             */
            trips: number;
            /**
             * Format: int64
             * @description Answers that contradicted themselves or most other endpoints.
             */
            contradictions: number;
            /**
             * Format: int64
             * @description Answers that differed from another endpoint's answer where no majority could decide. Neither was believed: a state that depends on them stays as it is. A third endpoint decides.
             */
            differences: number;
            /**
             * Format: int64
             * @description Calls that the endpoint's budget forbade.
             */
            withheld: number;
            problem?: string;
            lastError?: string;
            lastErrorAt?: components["schemas"]["Time"];
        };
        Head: {
            chainId: components["schemas"]["Uint64"];
            head: components["schemas"]["Uint64"];
            final: components["schemas"]["Uint64"];
        };
        Reader: {
            name: string;
            position: components["schemas"]["Uint64"];
            head: components["schemas"]["Uint64"];
            lag: components["schemas"]["Uint64"];
            /** @description Why the reader cannot process the next event; absent without an error. */
            problem?: string;
        };
        /**
         * @description A call, or a batch of at most 100.
         * @example {
         *       "jsonrpc": "2.0",
         *       "id": 1,
         *       "method": "eth_chainId",
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
         *       "result": "0xa5bf"
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
        RpcError: {
            /** Format: int64 */
            code: number;
            message: string;
            /** @description The problem that the REST API would return; the node's own data; or a hash (code 4). */
            data?: unknown;
        };
    };
    responses: {
        /** @description The reason why the request was not carried out. */
        Problem: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description An API key is required, or the given key is not in force. */
        Unauthorized: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too many requests from this client. */
        TooMany: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                /** @description Seconds. */
                "Retry-After"?: number;
                /** @description The limit's name; `r`, the remaining requests; `t`, the seconds until all requests are available again or, after a refusal, until the retry. */
                RateLimit?: string;
                /** @description The limit's name; `q`, the number of requests; `w`, the window in seconds. */
                "RateLimit-Policy"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Temporarily unavailable. Repeating the request is safe. */
        Unavailable: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                /** @description Seconds. */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: {
        /**
         * @description 1 to 256 bytes from 0x21 to 0x7E, compared byte by byte. A value that begins with a quote
         *     is a string of RFC 8941: the quotes are not part of the key, and `\"` and `\\` stand for a
         *     quote and a backslash (draft-ietf-httpapi-idempotency-key-header-07). The same request with the same key
         *     gets the first answer again, with `Idempotency-Replayed: true`. Another request with
         *     the key is `idempotency-conflict` (422). While the first request is in progress the
         *     answer is `idempotency-in-progress` (409). Each API key has idempotency keys of its
         *     own. The service keeps only answers with 200, up to 64 KiB, that contain no failure
         *     of the service. After any other answer the same request is carried out again, which
         *     accepts no transaction twice. A refused request leaves its key free for any other
         *     request; the key of a request that failed, or ended otherwise, stays with that
         *     request.
         */
        IdempotencyKey: string;
        Hash: components["schemas"]["HashText"];
        Sender: components["schemas"]["AccountText"];
        /** @description May be left out; a hash occurs on one chain only. */
        ChainId: components["schemas"]["ChainId"];
        /** @description nextCursor of the previous page, with the same filters. */
        Cursor: string;
        /**
         * @description The milestone to wait for: accepted; submitted, a node has taken it; mined, it is in a
         *     block; completed, it is in a block that can no longer leave the chain. Intents of the
         *     relay have the same milestones. The names of version 0.1 stay: broadcast, a node has taken
         *     it or its answer was lost; executed, as mined; final, the block of its verdict, of any
         *     kind, can no longer leave the chain.
         */
        Wait: "accepted" | "submitted" | "mined" | "completed" | "broadcast" | "executed" | "final";
        /** @description Maximum wait, in seconds or as a number with a unit (1.5s, 500ms). At most 55 seconds. */
        Timeout: string;
    };
    requestBodies: never;
    headers: {
        /** @description The request's id. */
        RequestId: string;
    };
    pathItems: never;
}
export type ChainId = components['schemas']['ChainId'];
export type AccountText = components['schemas']['AccountText'];
export type HashText = components['schemas']['HashText'];
export type Hash = components['schemas']['Hash'];
export type Address = components['schemas']['Address'];
export type GroupId = components['schemas']['GroupId'];
export type NonceKey = components['schemas']['NonceKey'];
export type Decimal = components['schemas']['Decimal'];
export type Uint64 = components['schemas']['Uint64'];
export type Time = components['schemas']['Time'];
export type Status = components['schemas']['Status'];
export type Submission = components['schemas']['Submission'];
export type Results = components['schemas']['Results'];
export type Taken = components['schemas']['Taken'];
export type Validated = components['schemas']['Validated'];
export type Waited = components['schemas']['Waited'];
export type Refused = components['schemas']['Refused'];
export type Fault = components['schemas']['Fault'];
export type ProblemKind = components['schemas']['ProblemKind'];
export type Problem = components['schemas']['Problem'];
export type Page = components['schemas']['Page'];
export type Transaction = components['schemas']['Transaction'];
export type ListedGroup = components['schemas']['ListedGroup'];
export type GroupsPage = components['schemas']['GroupsPage'];
export type Group = components['schemas']['Group'];
export type GroupMember = components['schemas']['GroupMember'];
export type CancelPlan = components['schemas']['CancelPlan'];
export type GroupPending = components['schemas']['GroupPending'];
export type NonceKeyInfo = components['schemas']['NonceKeyInfo'];
export type Outcome = components['schemas']['Outcome'];
export type Attempt = components['schemas']['Attempt'];
export type Answer = components['schemas']['Answer'];
export type Block = components['schemas']['Block'];
export type Receipt = components['schemas']['Receipt'];
export type Fees = components['schemas']['Fees'];
export type Call = components['schemas']['Call'];
export type TypedCancel = components['schemas']['TypedCancel'];
export type CanceledGroup = components['schemas']['CanceledGroup'];
export type CanceledMember = components['schemas']['CanceledMember'];
export type Trail = components['schemas']['Trail'];
export type Event = components['schemas']['Event'];
export type FollowedEvent = components['schemas']['FollowedEvent'];
export type TransactionState = components['schemas']['TransactionState'];
export type StateBlock = components['schemas']['StateBlock'];
export type Mark = components['schemas']['Mark'];
export type Meta = components['schemas']['Meta'];
export type Contract = components['schemas']['Contract'];
export type Probe = components['schemas']['Probe'];
export type Health = components['schemas']['Health'];
export type Dependency = components['schemas']['Dependency'];
export type Endpoint = components['schemas']['Endpoint'];
export type Head = components['schemas']['Head'];
export type Reader = components['schemas']['Reader'];
export type RpcRequest = components['schemas']['RpcRequest'];
export type RpcCall = components['schemas']['RpcCall'];
export type RpcAnswers = components['schemas']['RpcAnswers'];
export type RpcAnswer = components['schemas']['RpcAnswer'];
export type RpcError = components['schemas']['RpcError'];
export type ResponseProblem = components['responses']['Problem'];
export type ResponseUnauthorized = components['responses']['Unauthorized'];
export type ResponseTooMany = components['responses']['TooMany'];
export type ResponseUnavailable = components['responses']['Unavailable'];
export type ParameterIdempotencyKey = components['parameters']['IdempotencyKey'];
export type ParameterHash = components['parameters']['Hash'];
export type ParameterSender = components['parameters']['Sender'];
export type ParameterChainId = components['parameters']['ChainId'];
export type ParameterCursor = components['parameters']['Cursor'];
export type ParameterWait = components['parameters']['Wait'];
export type ParameterTimeout = components['parameters']['Timeout'];
export type HeaderRequestId = components['headers']['RequestId'];
export type $defs = Record<string, never>;
export interface operations {
    listTransactions: {
        parameters: {
            query?: {
                /** @description May be left out; a hash occurs on one chain only. */
                chainId?: components["parameters"]["ChainId"];
                sender?: components["schemas"]["AccountText"];
                groupId?: components["schemas"]["GroupId"];
                /**
                 * @description Only transactions whose nonce key makes no group, or whose group is pending.
                 *     Excludes groupId.
                 */
                ungrouped?: boolean;
                /** @description May be repeated; a transaction with any of the values matches. */
                status?: components["schemas"]["Status"][];
                limit?: number;
                /** @description nextCursor of the previous page, with the same filters. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. `Link` with `rel="next"` leads to the next page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
        };
    };
    submitTransactions: {
        parameters: {
            query?: {
                /**
                 * @description The milestone to wait for: accepted; submitted, a node has taken it; mined, it is in a
                 *     block; completed, it is in a block that can no longer leave the chain. Intents of the
                 *     relay have the same milestones. The names of version 0.1 stay: broadcast, a node has taken
                 *     it or its answer was lost; executed, as mined; final, the block of its verdict, of any
                 *     kind, can no longer leave the chain.
                 */
                wait?: components["parameters"]["Wait"];
                /** @description Maximum wait, in seconds or as a number with a unit (1.5s, 500ms). At most 55 seconds. */
                timeout?: components["parameters"]["Timeout"];
                /**
                 * @description only: answer as the submission would be answered, and store nothing. The service
                 *     checks the bytes, signatures, chain, size and validity window, and whether the
                 *     hash is known. It does not check the nonce, balance, fees or rights, which only
                 *     the chain knows. Excludes wait.
                 */
                validate?: "only";
            };
            header?: {
                /**
                 * @description 1 to 256 bytes from 0x21 to 0x7E, compared byte by byte. A value that begins with a quote
                 *     is a string of RFC 8941: the quotes are not part of the key, and `\"` and `\\` stand for a
                 *     quote and a backslash (draft-ietf-httpapi-idempotency-key-header-07). The same request with the same key
                 *     gets the first answer again, with `Idempotency-Replayed: true`. Another request with
                 *     the key is `idempotency-conflict` (422). While the first request is in progress the
                 *     answer is `idempotency-in-progress` (409). Each API key has idempotency keys of its
                 *     own. The service keeps only answers with 200, up to 64 KiB, that contain no failure
                 *     of the service. After any other answer the same request is carried out again, which
                 *     accepts no transaction twice. A refused request leaves its key free for any other
                 *     request; the key of a request that failed, or ended otherwise, stays with that
                 *     request.
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Submission"];
            };
        };
        responses: {
            /** @description One result for each transaction, in the order of the request. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Results"];
                };
            };
            /** @description As with 200, but a requested wait ended while the status could still be reached. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Results"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
        };
    };
    getTransaction: {
        parameters: {
            query?: {
                /** @description May be left out; a hash occurs on one chain only. */
                chainId?: components["parameters"]["ChainId"];
                /**
                 * @description The milestone to wait for: accepted; submitted, a node has taken it; mined, it is in a
                 *     block; completed, it is in a block that can no longer leave the chain. Intents of the
                 *     relay have the same milestones. The names of version 0.1 stay: broadcast, a node has taken
                 *     it or its answer was lost; executed, as mined; final, the block of its verdict, of any
                 *     kind, can no longer leave the chain.
                 */
                wait?: components["parameters"]["Wait"];
                /** @description Maximum wait, in seconds or as a number with a unit (1.5s, 500ms). At most 55 seconds. */
                timeout?: components["parameters"]["Timeout"];
            };
            header?: {
                /** @description ETags of answers that the client has. */
                "If-None-Match"?: string;
            };
            path: {
                hash: components["parameters"]["Hash"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The transaction, as of now. A transaction that was just accepted is found at once. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Transaction"];
                };
            };
            /** @description No event was recorded since. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    ETag?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
        };
    };
    markTransactionStale: {
        parameters: {
            query?: {
                /** @description May be left out; a hash occurs on one chain only. */
                chainId?: components["parameters"]["ChainId"];
            };
            header?: never;
            path: {
                hash: components["parameters"]["Hash"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The transaction is stale. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Transaction"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            422: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
        };
    };
    getTransactionEvents: {
        parameters: {
            query?: {
                /** @description May be left out; a hash occurs on one chain only. */
                chainId?: components["parameters"]["ChainId"];
                /** @description Only events whose version is greater. Excludes cursor. */
                after?: number;
                /** @description nextCursor of the previous page, with the same filters. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path: {
                hash: components["parameters"]["Hash"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description At most 1000 events. `Link` with `rel="next"` leads to more. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Trail"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
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
                    "X-Request-Id": components["headers"]["RequestId"];
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
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
        };
    };
    rpcOfChain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description A number, or a name by CAIP-2. */
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
                    "X-Request-Id": components["headers"]["RequestId"];
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
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            408: components["responses"]["Problem"];
            413: components["responses"]["Problem"];
            415: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancelGroup: {
        parameters: {
            query?: {
                /** @description Needed only when the group is on several chains. */
                chainId?: components["schemas"]["ChainId"];
            };
            header?: {
                /**
                 * @description 1 to 256 bytes from 0x21 to 0x7E, compared byte by byte. A value that begins with a quote
                 *     is a string of RFC 8941: the quotes are not part of the key, and `\"` and `\\` stand for a
                 *     quote and a backslash (draft-ietf-httpapi-idempotency-key-header-07). The same request with the same key
                 *     gets the first answer again, with `Idempotency-Replayed: true`. Another request with
                 *     the key is `idempotency-conflict` (422). While the first request is in progress the
                 *     answer is `idempotency-in-progress` (409). Each API key has idempotency keys of its
                 *     own. The service keeps only answers with 200, up to 64 KiB, that contain no failure
                 *     of the service. After any other answer the same request is carried out again, which
                 *     accepts no transaction twice. A refused request leaves its key free for any other
                 *     request; the key of a request that failed, or ended otherwise, stays with that
                 *     request.
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description `Signature` and hex. */
                Authorization?: string;
            };
            path: {
                sender: components["parameters"]["Sender"];
                groupId: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["TypedCancel"];
            };
        };
        responses: {
            /** @description The group is canceled. The answer has the result for each member. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CanceledGroup"];
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
            503: components["responses"]["Unavailable"];
        };
    };
    listGroups: {
        parameters: {
            query?: {
                /** @description Without it, the groups on every chain. */
                chainId?: components["schemas"]["ChainId"];
                /** @description Only groups whose endAt is in the future. */
                active?: boolean;
                limit?: number;
                /** @description nextCursor of the previous page, with the same filters. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description list: the answer is the list alone, and the next page's cursor is in `Link`. page: the
                 *     answer is an object with `nextCursor`, as of all other lists.
                 */
                form?: "list" | "page";
            };
            header?: never;
            path: {
                sender: components["parameters"]["Sender"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page. `Link` with `rel="next"` leads to the next page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedGroup"][] | components["schemas"]["GroupsPage"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
        };
    };
    getGroup: {
        parameters: {
            query?: {
                /** @description Needed when the group is on several chains. */
                chainId?: components["schemas"]["ChainId"];
                /** @description Maximum number of members. */
                limit?: number;
                /** @description nextCursor of the previous page, with the same filters. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path: {
                sender: components["parameters"]["Sender"];
                groupId: components["schemas"]["GroupId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The group. `Link` with `rel="next"` leads to more members. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Group"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            404: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
        };
    };
    followEvents: {
        parameters: {
            query?: {
                /** @description May be left out; a hash occurs on one chain only. */
                chainId?: components["parameters"]["ChainId"];
                sender?: components["schemas"]["AccountText"];
                groupId?: components["schemas"]["GroupId"];
                /** @description A transaction's hash. */
                hash?: components["schemas"]["HashText"];
                /**
                 * @description Prefix of the event's name: tx.mined, or tx. for all events of transactions. Up
                 *     to 16 prefixes, separated by commas.
                 */
                name?: string;
                /** @description Prefix of the stream's name, such as tx-42431-. */
                stream?: string;
                /**
                 * @description With `transaction`, each event of a transaction carries the transaction's state
                 *     right after the event, so that no look-up has to follow. If the stream leaves out
                 *     earlier events of the transaction, the state costs a look-up, as a filter by sender
                 *     does.
                 */
                include?: "transaction";
                /** @description Only events whose position is greater. 0 is the beginning of the log. */
                after?: number;
                /**
                 * @description Only events up to this position; the stream ends there. If the log has not
                 *     reached the position, the stream waits for it. `head` is the present end of the
                 *     log.
                 */
                until?: number | "head";
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
            /** @description The stream. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                    "application/x-ndjson": components["schemas"]["FollowedEvent"] | components["schemas"]["Mark"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            500: components["responses"]["Problem"];
            503: components["responses"]["Unavailable"];
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
            /** @description The contract as YAML. */
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
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All required systems can be reached. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            403: components["responses"]["Problem"];
            429: components["responses"]["TooMany"];
            /** @description The database cannot be reached or accepts no writes; a configured Redis cannot be reached; or a reader of the log cannot process an event. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    getLive: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process serves. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Probe"];
                };
            };
            403: components["responses"]["Problem"];
        };
    };
    getReady: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The database can be reached. Redis is not checked. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Probe"];
                };
            };
            403: components["responses"]["Problem"];
            /** @description The database cannot be reached or accepts no writes, or the process is stopping. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Probe"];
                };
            };
        };
    };
}
