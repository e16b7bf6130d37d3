// Performs the scenario's calls with the TypeScript client, in every runtime: lib is the package
// as the runtime has loaded it, services are the URLs and API keys of the services.
export function performer(lib, { delivery, relay: relaying }) {
  const client = new lib.Client(delivery.url, { apiKey: delivery.key })
  const relay = new lib.Relay(relaying.url, { apiKey: relaying.key })
  const hooks = relay.webhooks

  const collect = async (items, stopAt) => {
    const some = []
    for await (const one of items) {
      some.push(one)
      if (stopAt && matches(stopAt, one)) break
    }
    return some
  }
  const filters = ({ statuses, ...rest } = {}) => ({ ...rest, status: statuses })
  const until = (stopAt) => (stopAt ? undefined : 'head')

  const calls = {
    'client.submit': (a) => client.submit(a.chain, a.raws, { idempotencyKey: a.key, wait: a.wait, timeout: a.timeoutMilli }),
    'client.validate': (a) => client.validate(a.chain, a.raws),
    'client.get': (a) => client.get(a.hash),
    'client.wait': (a) => client.wait(a.hash, { for: a.wait }),
    'client.list': (a) => collect(client.list(filters(a.filters))),
    'client.events': (a) => collect(client.events(a.hash)),
    'client.markStale': (a) => client.markStale(a.hash),
    'client.follow': (a) => collect(client.follow({ after: a.after, hash: a.hash, sender: a.sender, include: a.include, until: until(a.stopAt) }), a.stopAt),
    'client.rpc': (a) => client.rpc(a.method, a.params, { chainId: a.chain }),
    'client.groups': (a) => collect(client.groups(a.sender, { chainId: a.chain })),
    'client.group': (a) => client.group(a.sender, a.group, { chainId: a.chain }),
    'cancelMessage': (a) => lib.cancelMessage({ chainId: a.chain, deployment: a.deployment, sender: a.sender, groupId: a.group, expires: BigInt(a.expires) }),
    'client.cancelGroup': (a) => client.cancelGroup(a.sender, a.group, { signature: a.signature, expires: a.expires }, { chainId: a.chain, idempotencyKey: a.key }),
    'client.health': () => client.health(),
    'client.live': () => client.live(),
    'client.ready': () => client.ready(),
    'client.contract': () => client.contract(),
    'client.contractText': () => client.contractText(),
    'client.docs': () => client.docs(),
    'client.problem': (a) => client.problem(a.code),
    'relay.rpc': (a) => relay.rpc(a.method, a.params, { chainId: a.chain, pool: a.pool }),
    'relay.problem': (a) => relay.problem(a.code),
    'relay.contract': () => relay.contract(),
    'relay.docs': () => relay.docs(),
    'relay.contractText': () => relay.contractText(),
    'verifyWebhook': (a) => lib.verifyWebhook(new Headers(a.headers), a.body, { secrets: a.secrets }),
    'relay.create': (a) => relay.create(a.request, { wait: a.wait, timeout: a.timeoutMilli }),
    'relay.createAll': (a) => relay.createAll(a.requests),
    'relay.signers': () => relay.signers(),
    'relay.signer': (a) => relay.signer(a.sender),
    'relay.lanes': (a) => collect(relay.lanes({ signer: a.sender }), a.stopAt),
    'relay.lane': (a) => relay.lane({ chainId: a.chain, signer: a.sender }),
    'relay.diagnosis': (a) => relay.diagnosis({ chainId: a.chain, signer: a.sender }),
    'relay.get': (a) => relay.get(a.id),
    'relay.find': ({ filters: { key, ...of } }) => relay.find(key, of),
    'relay.wait': (a) => relay.wait(a.id, { for: a.wait }),
    'relay.list': (a) => collect(relay.list(filters(a.filters))),
    'relay.events': (a) => collect(relay.events(a.id)),
    'relay.follow': (a) => collect(relay.follow({ after: a.after, intent: a.id, until: until(a.stopAt) }), a.stopAt),
    'relay.cancel': (a) => relay.cancel(a.id, { reason: a.reason }),
    'relay.speedUp': (a) => relay.speedUp(a.id, a.fee),
    'relay.webhooks.list': () => collect(hooks.list()),
    'relay.webhooks.get': (a) => hooks.get(a.id),
    'relay.webhooks.own': (a) => hooks.own(a.url),
    'relay.webhooks.try': (a) => hooks.try(a.url),
    'relay.webhooks.dead': (a) => collect(hooks.dead(a.id), a.stopAt),
    'relay.webhooks.redeliver': (a) => hooks.redeliver(a.id, a.notices),
    'relay.webhooks.enable': (a) => hooks.enable(a.id),
    'relay.webhooks.disable': (a) => hooks.disable(a.id),
  }

  const failureOf = (error) => {
    if (error instanceof lib.WatchtowerError) return { kind: 'problem', code: error.problem.code, outcome: error.outcome }
    if (error instanceof lib.NoAnswerError) return { kind: 'no-answer', outcome: error.outcome }
    if (error instanceof lib.RpcCallError) return { kind: 'rpc', code: error.code }
    return { kind: error instanceof lib.WebhookError ? 'webhook' : 'other' }
  }

  // Takes and returns JSON: a call and its arguments, and its result or failure.
  return async (text) => {
    const { call, with: given } = exact(text)
    if (!calls[call]) return JSON.stringify({ missing: call })
    try {
      return written({ value: await calls[call](given ?? {}) })
    } catch (error) {
      return written({ error: failureOf(error), says: String(error?.stack ?? error) })
    }
  }
}

// The scenario's own numbers are exact, too.
function exact(text) {
  return JSON.parse(text.replace(/([:[,])(\d{17,})(?=[,}\]])/g, '$1"bigint:$2"'), (_, v) => (typeof v === 'string' && v.startsWith('bigint:') ? BigInt(v.slice(7)) : v))
}

function written(value) {
  return JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `bigint:${v}` : v)).replace(/"bigint:(\d+)"/g, '$1')
}

function matches(want, got) {
  return Object.entries(want).every(([name, v]) => String(got[name]) === String(v))
}
