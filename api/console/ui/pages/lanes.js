// Lanes: one signer's nonces under one nonce key, on one chain.
import { html } from '../vendor/htm-preact.js'
import { act, get } from '../api.js'
import { read } from '../metrics.js'
import { Empty, Facts, Hash, Order, State, Table, Time, Trouble, Ways, useRead } from '../elements.js'
import { go } from '../route.js'
import { amount, span } from '../words.js'

// figures of the lanes that this process holds, by chain, signer and nonce key.
async function figures() {
  const all = await read(), lanes = {}
  for (const [metric, samples] of Object.entries(all)) {
    if (!metric.startsWith('watchtower_relay_lane_')) continue
    for (const s of samples) {
      const { chain, signer, nonce_key: key = '0x0' } = s.labels
      if (signer) (lanes[`${chain}/${signer}/${key}`] ||= { chain, signer, key })[metric.slice('watchtower_relay_lane_'.length)] = s.value
    }
  }
  return Object.values(lanes)
}

// list reads the lanes that the service lists, and adds this process's figures.
async function list() {
  const [listed, own] = await Promise.all([get('relay', '/v1/lanes?limit=200').catch(() => ({ lanes: [] })), figures()])
  const rows = listed.lanes.map((l) => ({ chain: l.chainId, signer: l.signer, key: l.nonceKey, ...l }))
  for (const f of own) {
    const known = rows.find((r) => String(r.chain) === String(f.chain) && r.signer === f.signer && r.key === f.key)
    if (known) Object.assign(known, f); else rows.push(f)
  }
  return rows
}

export function Lanes() {
  const lanes = useRead(list, [], 5000)
  const rows = lanes.value || []
  const open = (l) => go(`/lanes/${l.chain}/${l.signer}/${l.key}`)
  return html`<h1>Lanes</h1><${Trouble} of=${lanes.trouble} again=${lanes.again} />
    ${lanes.value && rows.length === 0 ? html`<${Empty}><p>No lane is open.</p><p>A lane opens with the first intent for its signer.</p><//>` : html`<${Table} rows=${rows} label="Lanes" onOpen=${open} keyOf=${(l) => l.chain + l.signer + l.key} columns=${[
      { name: 'signer', show: (l) => html`<${Hash} of=${l.signer} to=${`/lanes/${l.chain}/${l.signer}/${l.key}`} />` }, { name: 'chain', show: (l) => l.chain }, { name: 'nonce key', show: (l) => html`<span class="hash">${l.key.length > 12 ? l.key.slice(0, 10) + '…' : l.key}</span>` },
      { name: 'state', show: (l) => (l.hole_nonces > 0 ? html`<${State} of="failed" title="a hole" /> hole` : l.oldest_in_flight_seconds > 60 ? html`<${State} of="lagging" /> ` : html`<${State} of="active" />`) },
      { name: 'next nonce', class: 'num', show: (l) => l.next_nonce ?? l.nextNonce ?? '' }, { name: 'in flight', class: 'num', show: (l) => l.in_flight_nonces ?? l.inFlight ?? '' }, { name: 'backlog', class: 'num', show: (l) => l.backlog ?? '' },
      { name: 'oldest in flight', class: 'num', show: (l) => (l.oldest_in_flight_seconds ? span(l.oldest_in_flight_seconds) : '') }, { name: 'drift', class: 'num', show: (l) => l.drift_nonces ?? l.drift ?? '' },
      { name: 'holder', show: (l) => l.holder || '' }, { name: 'last error', show: (l) => l.lastError || '' },
    ]} />`}`
}

export function Lane({ of: [path] }) {
  const [chain, signer, key] = path.split('/')
  const lane = useRead(async () => (await list()).find((l) => String(l.chain) === chain && l.signer === signer && l.key === key), [path], 4000)
  const intents = useRead(() => get('relay', `/v1/intents?chainId=${chain}&signer=${signer}&limit=200`), [path], 4000)
  const diagnosis = useRead(() => get('relay', `/v1/lanes/${chain}/${signer}/${key}/diagnosis`).catch((e) => (e.status === 404 ? null : Promise.reject(e))), [path], 15000)
  const l = lane.value
  const mine = (intents.value?.intents || []).filter((i) => i.place?.nonceKey === key).sort((a, b) => a.place.nonce - b.place.nonce)
  return html`<h1>Lane of <${Hash} of=${signer} /></h1>
    <p class="dim">chain ${chain}, nonce key ${key} <${Ways} part="relay" path=${`/v1/lanes/${chain}/${signer}/${key}`} cli=${`relayer doctor --chain ${chain} --signer ${signer}`} /></p>
    <${Trouble} of=${lane.trouble || intents.trouble} again=${lane.again} />
    ${l && html`<div class="panel"><${Facts} of=${[['next nonce', l.next_nonce ?? l.nextNonce], ['in flight', l.in_flight_nonces ?? l.inFlight], ['open', l.open_nonces], ['holes', l.hole_nonces], ['room left', l.budget_left_nonces], ['drift', l.drift_nonces ?? l.drift], ['oldest in flight', l.oldest_in_flight_seconds && span(l.oldest_in_flight_seconds)], ['holder', l.holder], ['token', l.token], ['last error', l.lastError]]} />
      ${l.hole_nonces > 0 && html`<${Fill} chain=${chain} signer=${signer} nonceKey=${key} done=${lane.again} />`}</div>`}
    ${diagnosis.value && html`<div class="panel"><h2>Diagnosis</h2><ul>${(diagnosis.value.findings || []).map((f) => html`<li><strong>${f.code || f.title || ''}</strong> ${f.text || f.detail || ''} ${f.remedy || ''}</li>`)}</ul></div>`}
    <div class="panel"><h2>Nonces</h2><div class="strip">${mine.map((i) => html`<a href=${'#/intents/' + i.id} title=${i.status}><span class=${{ completed: 'final', mined: 'final', assigned: 'reserved', submitted: 'flight' }[i.status] || ''}>${i.place.nonce}</span></a>`)}</div>
      <p class="dim">Green has landed, brown is in flight, blue is reserved.</p></div>
    <div class="panel"><h2>Intents on it</h2>${mine.slice(-30).reverse().map((i) => html`<p><${Hash} of=${i.id} to=${'/intents/' + i.id} /> nonce ${amount(i.place.nonce)} <${State} of=${i.status} /> <${Time} at=${i.requestedAt} /></p>`)}</div>`
}

function Fill({ chain, signer, nonceKey, done }) {
  return html`<${Order} label="fill the hole" what="Fill the lowest hole with a no-op" does=${(reason) => act('Fill', 'POST', 'operate', `/admin/lanes/${chain}/${signer}/${nonceKey}/fill`, { reason }).then(done)}>
    <p>A transaction that does nothing takes the nonce, so that the ones behind it can land.</p><//>`
}
