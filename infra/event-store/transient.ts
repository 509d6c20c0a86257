import { isConnectionError } from '../postgres/pool.ts'

/**
 * Whether the same work may succeed when it is tried again: the connection, a deadlock or serialization failure
 * (class 40), resources (53), a lock not to be had (55), an operator or shutdown (57), the system (58).
 */
export function isTransient(error: unknown): boolean {
  if (isConnectionError(error)) return true
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^(40|53|55|57|58)[0-9A-Z]{3}$/.test(code)
}
