// The overview: what waits, how fast it goes, and what is wrong.
import { html, useEffect, useRef, useState } from '../vendor/htm-preact.js'
import uPlot from '../vendor/uplot.js'
import { get } from '../api.js'
import { by, highest, quantile, read, sum } from '../metrics.js'
import { Empty, State, Time, Trouble, useRead } from '../elements.js'
import { session, use } from '../state.js'
import { href } from '../route.js'
import { amount, span } from '../words.js'

const Card = ({ name, value, to, note }) => html`<div class="card"><span class="dim">${name}</span>${to ? html`<a href=${href(to)}><b>${value}</b></a>` : html`<b>${value}</b>`}${note && html`<span class="dim">${note}</span>`}</div>`

const every = 5000
const kept = 360 // points of a curve: half an hour

// useFigures reads the figures again and again, and keeps rates over time.
function useFigures() {
  const past = useRef([])
  const figures = useRead(async () => {
    const all = await read()
    const at = Date.now() / 1000
    past.current = [...past.current, { at, all: { done: sum(all, 'verdicts_total'), taken: sum(all, 'submissions_total'), ended: sum(all, 'relay_intents_ended_total') }, page: all }].slice(-kept)
    for (const old of past.current.slice(0, -13)) delete old.page // a minute of whole pages is enough
    return all
  }, [], every)
  return { ...figures, past: past.current }
}

const rate = (past, name) => past.slice(1).map((p, i) => Math.max((p.all[name] - past[i].all[name]) / (p.at - past[i].at), 0))

function Curve({ past, relay }) {
  const box = useRef(), plot = useRef()
  useEffect(() => {
    const ink = getComputedStyle(document.documentElement).getPropertyValue('--dim')
    const series = [{}, { label: 'accepted/s', stroke: '#4d8fe0', width: 2 }, { label: 'decided/s', stroke: '#3aa76d', width: 2 }]
    if (relay) series.push({ label: 'intents ended/s', stroke: '#c98a2b', width: 2 })
    const size = () => ({ width: Math.max(box.current.clientWidth, 200), height: 180 })
    plot.current = new uPlot({ ...size(), series, axes: [{ stroke: ink }, { stroke: ink }], cursor: { y: false } }, [[]], box.current)
    const watch = new ResizeObserver(() => plot.current.setSize(size()))
    watch.observe(box.current)
    return () => { watch.disconnect(); plot.current.destroy() }
  }, [relay])
  useEffect(() => {
    const data = [past.slice(1).map((p) => p.at), rate(past, 'taken'), rate(past, 'done')]
    if (relay) data.push(rate(past, 'ended'))
    if (past.length > 2) plot.current?.setData(data)
  }, [past.length && past.at(-1).at])
  return html`<div ref=${box} role="img" aria-label="Accepted and decided for each second, over the last half hour"></div>`
}

// alarms are what an operator must know, with what to do about it.
function alarms(all, health) {
  const found = []
  const add = (when, text, to) => when && found.push({ text, to })
  add(sum(all, 'finality_violations_total') > 0, 'The chain contradicted a final verdict. Stop payouts that rest on it and look at the transactions marked violated.', '/transactions?violated=1')
  add(highest(all, 'queue_oldest_due_seconds') > 30, `A transaction has been due for ${span(highest(all, 'queue_oldest_due_seconds'))} and was not sent: look at the endpoints below.`, '/transactions?status=queued')
  add(highest(all, 'reader_lag_events') > 10000, 'A reader of the log is far behind: tables and messages are late.', '/readers')
  add(highest(all, 'reader_stuck_position') > 0, 'A reader cannot process an event: see its problem.', '/readers')
  add(sum(all, 'relay_lanes_in_trouble') > 0, 'A lane is in trouble: its diagnosis says what ends that.', '/lanes')
  add(sum(all, 'relay_halts') > 0, 'Signing is halted by a safeguard.', '/safeguards')
  add(sum(all, 'relay_notices', { state: 'dead' }) > 0, 'Webhook deliveries were given up: enable the webhook, then send them again.', '/webhooks')
  for (const s of all.watchtower_relay_signer_balance || []) {
    const least = (all.watchtower_relay_signer_threshold || []).find((t) => t.labels.signer === s.labels.signer && t.labels.chain === s.labels.chain)
    add(least && s.value < least.value, `The balance of ${s.labels.signer} is below its threshold: send it funds.`, '/signers')
  }
  const up = (health?.endpoints || []).filter((e) => e.healthy)
  add(health?.endpoints?.length && up.length === 0, 'No endpoint is healthy: nothing is sent and nothing is seen.', '/')
  return found
}

export function Overview() {
  const s = use(session)
  const relay = s.parts.includes('relay')
  const figures = useFigures()
  const health = useRead(() => get('delivery', '/health'), [], every)
  const all = figures.value
  if (!all) return html`<${Trouble} of=${figures.trouble} again=${figures.again} /><${Empty}>Reading the figures …<//>`
  const waiting = by(all, 'queue_transactions', 'state'), intents = by(all, 'relay_intents', 'state')
  const open = Object.values(waiting).reduce((a, b) => a + b, 0)
  const before = figures.past.find((p) => p.page)?.page
  const minute = figures.past.length > 1 ? before : undefined
  const sent = quantile(all, 'first_send_delay_seconds', 0.99, {}, minute) ?? quantile(all, 'first_send_delay_seconds', 0.99)
  const found = alarms(all, health.value)
  return html`<h1>Overview</h1>
    ${found.length > 0 && html`<div class="panel" role="alert"><h2>Needs somebody</h2><ul>${found.map((f) => html`<li>${f.text} <a href=${href(f.to)}>Look</a></li>`)}</ul></div>`}
    <div class="cards">
      <${Card} name="transactions in work" value=${amount(open)} to="/transactions" note=${Object.entries(waiting).filter(([, n]) => n).map(([k, n]) => amount(n) + ' ' + k).join(', ')} />
      <${Card} name="due now" value=${amount(sum(all, 'queue_due_transactions'))} to="/transactions?status=queued" note=${highest(all, 'queue_oldest_due_seconds') > 1 ? 'the oldest for ' + span(highest(all, 'queue_oldest_due_seconds')) : 'none late'} />
      <${Card} name="decided, each second" value=${(rate(figures.past, 'done').at(-1) ?? 0).toFixed(1)} note="over the last five seconds" />
      <${Card} name="eligible to first send, p99" value=${sent === undefined ? '–' : sent < 1 ? Math.round(sent * 1000) + ' ms' : sent.toFixed(1) + ' s'} note=${minute ? 'last minute' : 'since start'} />
      ${relay && html`<${Card} name="intents in work" value=${amount(Object.values(intents).reduce((a, b) => a + b, 0))} to="/intents" note=${Object.entries(intents).filter(([, n]) => n).map(([k, n]) => amount(n) + ' ' + k).join(', ')} />`}
      ${relay && html`<${Card} name="lanes held" value=${sum(all, 'relay_lanes_held')} to="/lanes" note=${sum(all, 'relay_lanes_in_trouble') ? sum(all, 'relay_lanes_in_trouble') + ' in trouble' : 'none in trouble'} />`}
      <${Card} name="API requests with errors of ours" value=${amount((all.watchtower_http_requests_total || []).filter((x) => x.labels.code?.startsWith('5')).reduce((n, x) => n + x.value, 0))} note="since start" />
    </div>
    <div class="panel"><h2>The last half hour</h2><${Curve} past=${figures.past} relay=${relay} /></div>
    <${Trouble} of=${figures.trouble || health.trouble} />
    <${Endpoints} health=${health.value} />`
}

function Endpoints({ health }) {
  if (!health) return null
  return html`<div class="panel"><h2>Endpoints</h2>
    <table><thead><tr><th>chain</th><th>name</th><th>state</th><th class="num">head</th><th class="num">behind</th><th class="num">latency</th><th class="num">errors</th><th>last error</th></tr></thead>
    <tbody>${(health.endpoints || []).map((e) => html`<tr><td>${e.chainId}</td><td>${e.name}${e.reading ? html` <span class="dim">read from</span>` : ''}</td><td><${State} of=${e.state} title=${e.problem} /></td><td class="num">${amount(e.head)}</td><td class="num">${e.lag}</td><td class="num">${Math.round(e.latencyMs)} ms</td><td class="num">${Math.round(e.errorRate * 100)} %</td><td class="wide">${e.problem || e.lastError || ''} ${e.lastErrorAt && html`<${Time} at=${e.lastErrorAt} />`}</td></tr>`)}</tbody></table>
    <p class="dim">Heads: ${(health.heads || []).map((h) => `chain ${h.chainId}: ${amount(h.head)}, final ${amount(h.final)}`).join('; ')}. Database ${health.dependencies.database.ok ? 'answers' : 'does not answer'}.</p></div>`
}
