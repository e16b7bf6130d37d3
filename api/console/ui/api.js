// Requests. Each goes to the console's own origin; the part names the API that answers.
import { session, clockFrom, tell } from './state.js'

const base = new URL('.', document.baseURI)

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || 'status ' + status)
    Object.assign(this, { status, code: body.code, requestId: body.requestId, errors: body.errors })
  }
}

async function request(address, options = {}) {
  const response = await fetch(address, { cache: 'no-store', ...options })
  if (!response.ok) {
    const body = await response.json().catch(() => ({}))
    if (response.status === 401 && session.value?.signed) await whoami()
    throw new Problem(response.status, body)
  }
  return response
}

export const addressOf = (part, path) => new URL('api/' + part + path, base)

export const get = async (part, path, options) => (await request(addressOf(part, path), options)).json()
export const text = async (part, path) => (await request(addressOf(part, path))).text()
export const send = async (method, part, path, body) => {
  const response = await request(addressOf(part, path), {
    method, headers: { 'Content-Type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body),
  })
  return response.status === 204 ? null : response.json()
}

// query makes a query from members; empty ones are left out, lists repeat their name.
export function query(members) {
  const q = new URLSearchParams()
  for (const [name, value] of Object.entries(members)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== null && one !== '') q.append(name, one)
  }
  const s = q.toString()
  return s ? '?' + s : ''
}

export async function whoami() {
  const shown = await (await request(new URL('session', base))).json()
  session.value = shown
  clockFrom(shown.now)
  return shown
}

export async function signIn(key) {
  const response = await request(new URL('session', base), {
    method: 'POST', headers: { Authorization: 'Bearer ' + key.trim(), 'Content-Type': 'application/json' },
  })
  session.value = await response.json()
}

export async function signOut() {
  await request(new URL('session', base), { method: 'DELETE' })
  await whoami()
}

// follow reads a stream of events until stop is called. After a cut it goes on where it was.
export function follow(part, path, take) {
  const control = new AbortController()
  let last = ''
  ;(async () => {
    for (let pause = 500; !control.signal.aborted; pause = Math.min(pause * 2, 15000)) {
      try {
        const response = await request(addressOf(part, path), {
          signal: control.signal, headers: { Accept: 'text/event-stream', ...(last ? { 'Last-Event-ID': last } : {}) },
        })
        pause = 500
        for await (const event of eventsOf(response.body)) {
          if (event.id) last = event.id
          if (event.data) take(JSON.parse(event.data))
        }
      } catch (problem) {
        if (control.signal.aborted || problem.status === 401 || problem.status === 403) return
      }
      await new Promise((done) => setTimeout(done, pause))
    }
  })()
  return () => control.abort()
}

// eventsOf reads server-sent events (HTML standard, section 9.2.6) from a body.
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    rest += value
    for (let end; (end = rest.indexOf('\n\n')) >= 0; rest = rest.slice(end + 2)) {
      const event = { data: '' }
      for (const line of rest.slice(0, end).split('\n')) {
        if (line.startsWith('id:')) event.id = line.slice(3).trim()
        else if (line.startsWith('event:')) event.name = line.slice(6).trim()
        else if (line.startsWith('data:')) event.data += line.slice(5).trim()
      }
      yield event
    }
  }
}

// ask sends a command and says what came of it.
export async function act(what, method, part, path, body) {
  try {
    const answer = await send(method, part, path, body)
    tell(what + ': done')
    return answer
  } catch (problem) {
    tell(what + ': ' + problem.message, true)
    throw problem
  }
}
