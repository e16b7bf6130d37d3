/** Aborts a connection when its user aborts it, or after too long a silence. */
export class Silence {
  readonly #connection = new AbortController()
  readonly #end = () => this.#connection.abort(this.#user?.reason)
  readonly #user: AbortSignal | undefined
  readonly #most: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #lasted = false

  /** Starts the timer: the silence may last this many milliseconds from now. */
  constructor(most: number, user: AbortSignal | undefined) {
    this.#most = most
    this.#user = user
    user?.addEventListener('abort', this.#end, { once: true })
    this.begin()
  }

  /** The signal for fetch. */
  get signal(): AbortSignal {
    return this.#connection.signal
  }

  /** Whether the silence has lasted too long. */
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

  /** Stops the timer and detaches from the user's signal. Call it once the connection is not used any more. */
  close(): void {
    this.break()
    this.#user?.removeEventListener('abort', this.#end)
  }
}
