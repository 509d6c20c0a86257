import { randomBytes } from 'node:crypto'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import type { DecidedEvent } from '../../../../infra/event-store/decide.ts'
import { organizationId } from '../../../support/organization-rows.ts'
import { refusal } from '../../organizations/given.ts'

export const keyring = createKeyring(randomBytes(32).toString('base64'))
export const scope = { organizationId, environment: 'live' } as const
/** Those who must not see what is of `scope`. */
export const strangers = [
  { organizationId: `org_${'2'.repeat(26)}`, environment: 'live' },
  { organizationId, environment: 'test' },
] as const

export const eventsOf = (decisions: DecidedEvent[]) => decisions.map(({ event }) => event)

/** The refusal that `decide` ends with; throws when it does not. */
export function refusalOf(decide: () => unknown): { status: number; code: string } {
  const { status, code } = refusal(decide)
  return { status, code }
}
