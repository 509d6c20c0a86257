import { sessionLifetimeMs } from './sealed-ids.ts'

const name = '__Host-sid'
const pattern = /(?:^|;\s*)__Host-sid=([A-Za-z0-9_-]{1,512})(?:;|$)/

/** Keeps the continuity id where scripts cannot read it; partitioned, so that it follows nobody across sites. */
export function continuityCookie(value: string): string {
  const maxAge = sessionLifetimeMs / 1000
  return `${name}=${value}; Max-Age=${maxAge}; Path=/; HttpOnly; Secure; SameSite=None; Partitioned`
}

/** The cookie's value in a Cookie header; undefined when there is none or it is not of our alphabet. */
export function readContinuityCookie(header: string | undefined): string | undefined {
  return header === undefined ? undefined : pattern.exec(header)?.[1]
}
