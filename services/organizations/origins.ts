import type { Environment } from '../../schemas/events.ts'

/**
 * An allowed origin as it is stored: lower case, punycode, no default port, no slash at the
 * end. Live keys take `https://host[:port]` and
 * `https://*.host`, test keys also any exact http or https origin. undefined for anything else.
 */
export function normalOrigin(text: string, environment: Environment): string | undefined {
  const wildcard = /^https:\/\/\*\.([^:]+)$/i.exec(text)
  if (wildcard?.[1]) {
    const host = exactOrigin(`https://${wildcard[1]}`)
    // A wildcard over a whole top-level domain or an address is never meant.
    return host && isDomain(host) ? host.replace('https://', 'https://*.') : undefined
  }
  const origin = exactOrigin(text)
  if (!origin) return undefined
  return environment === 'test' || origin.startsWith('https://') ? origin : undefined
}

/** Only scheme, host and port: no path but `/`, query, fragment or user. */
function exactOrigin(text: string): string | undefined {
  if (!/^https?:\/\/[^/?#@\\*\s]+\/?$/i.test(text) || !URL.canParse(text)) return undefined
  return new URL(text).origin
}

function isDomain(origin: string): boolean {
  return /^https:\/\/([a-z0-9-]+\.)+[a-z][a-z0-9-]*$/.test(origin)
}
