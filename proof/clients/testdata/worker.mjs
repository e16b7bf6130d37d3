// workerd: each call is a request.
import * as lib from '@tempo-watchtower/client'
import { performer } from './runner.mjs'

export default {
  async fetch(request, env) {
    return new Response(await performer(lib, JSON.parse(env.SERVICES))(await request.text()))
  },
}
