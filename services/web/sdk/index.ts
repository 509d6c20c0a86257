import type { StartOptions, TidegateClient } from './api.ts'
import { startAt } from './start.ts'
import { tryOrNull } from './support.ts'

/** Starts the SDK of /t.js. The default endpoint is the URL that the script came from, without `/t.js`. */
export function start(options: StartOptions): TidegateClient {
  // If a site bundles this file, `import.meta.url` may be missing or belong to another script.
  return startAt(options, tryOrNull(() => serverOf(new URL(import.meta.url))) ?? undefined)
}

const serverOf = ({ origin, pathname }: URL): string =>
  origin + (/^(.*)\/t\.js$/.exec(pathname)?.[1] ?? '')
