/** A connection that is ended when its user ends it, or when it has been silent for too long. */
export class Silence {
  readonly #connection = new AbortController()
  readonly #end = () => this.#connection.abort(this.#user?.reason)
  readonly #user: AbortSignal | undefined
  readonly #most: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #lasted = false

  /** The silence begins now, and may last so many milliseconds. */
  constructor(most: number, user: AbortSignal | undefined) {
    this.#most = most
    this.#user = user
    user?.addEventListener('abort', this.#end, { once: true })
    this.begin()
  }

  /** For fetch. */
  get signal(): AbortSignal {
    return this.#connection.signal
  }

  /** Whether it has lasted too long. */
  get lasted(): boolean {
    return this.#lasted
  }

  begin(): void {
    this.#timer = setTimeout(() => {
      this.#lasted = true
      this.#end()
    }, this.#most)
  }

  break(): void {
    clearTimeout(this.#timer)
  }

  /** The connection is of no more use. */
  close(): void {
    this.break()
    this.#user?.removeEventListener('abort', this.#end)
  }
}
