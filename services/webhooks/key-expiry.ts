import type pg from 'pg'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { processDueItems } from '../../infra/flow/due-items.ts'
import type { Clock } from '../../infra/ids.ts'
import { iso } from '../../infra/iso.ts'
import { findExpiringKeys } from '../../projections/organizations/queries.ts'
import type { ApiKeyRow } from '../../projections/organizations/tables.ts'
import type { Notice } from './events/schemas.ts'
import { createRaise, findDueNotices } from './raise.ts'

interface KeyExpiryOptions {
  pool: pg.Pool
  decideAs: DecideAs
  clock: Clock
}

/**
 * Raises `key.expiring` for keys that expire soon, once for each expiry and only if an endpoint is subscribed. Returns
 * the number of events. Any number of processes may run this; one works at a time.
 */
export function raiseKeyExpiries(options: KeyExpiryOptions): Promise<number> {
  const now = options.clock()
  return processDueItems(options.pool, 'key-expiry-notifier', {
    async findDue(tx, limit) {
      const keys = await findExpiringKeys(tx, now)
      const notices = keys.map((key) => expiryNotice(key, now))
      return (await findDueNotices(tx, notices)).slice(0, limit)
    },
    work: createRaise(options),
  })
}

export function expiryNotice(key: ApiKeyRow, now: number): Notice {
  const { id, organization_id: organizationId, environment, name, key_preview } = key
  const expires_at = iso(key.expires_at ?? 0)
  return {
    organizationId,
    environment,
    type: 'key.expiring',
    occasion: `${id} ${expires_at}`,
    subject: { type: 'api_key', id },
    data: { object: 'api_key_expiry', key: { id, type: key.type, name, key_preview, expires_at } },
    at: now,
  }
}
