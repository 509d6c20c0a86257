import type { StartOptions, TidegateClient } from './api.ts'
import { startAt } from './start.ts'
import { readOrNull } from './support.ts'

/** The start of /t.js, whose default server is the one that the script came from. */
export function start(options: StartOptions): TidegateClient {
  // A site's bundler may have left no address of the module.
  return startAt(options, readOrNull(() => new URL(import.meta.url).origin) ?? undefined)
}
