import type { Keyring } from '../../infra/crypto/keyring.ts'
import type { Decide } from '../../infra/decide.ts'
import type { Clock, Random } from '../../infra/ids.ts'
import { eventTopics } from '../../schemas/events.ts'

/** What commands work with. Ids, secrets and times come from `random` and `clock` alone: with the same, they are repeated. */
export interface CommandDeps {
  decide: Decide
  keyring: Keyring
  clock: Clock
  random: Random
}

/** The log and the read model of everything that is decided about one organization, one command at a time. */
export function streamOf(organizationId: string) {
  return {
    topic: eventTopics.OrganizationCreated,
    projection: 'organizations',
    key: organizationId,
    locks: [`organization:${organizationId}`],
  }
}
