import type { StartOptions, TidegateClient } from './api.ts'
import { startAt } from './start.ts'

/** The start of /t.js, whose default server is the one that the script came from. */
export function start(options: StartOptions): TidegateClient {
  return startAt(options, new URL(import.meta.url).origin)
}
