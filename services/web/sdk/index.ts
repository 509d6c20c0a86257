import type { StartOptions, TidegateClient } from './api.ts'
import { startAt } from './start.ts'
import { readOrNull } from './support.ts'

/** The start of /t.js, whose default server is the one that the script came from, with the path before its name. */
export function start(options: StartOptions): TidegateClient {
  // A site's bundler may have left no address of the module, or that of a script of its own.
  return startAt(options, readOrNull(() => serverOf(new URL(import.meta.url))) ?? undefined)
}

const serverOf = ({ origin, pathname }: URL): string =>
  origin + (/^(.*)\/t\.js$/.exec(pathname)?.[1] ?? '')
