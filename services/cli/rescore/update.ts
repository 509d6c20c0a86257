import { createSkips } from '../../../infra/event-store/skips.ts'
import manifest from '../../../package.json' with { type: 'json' }
import type { Environment } from '../../../schemas/events.ts'
import { since as sinceOf } from '../arguments.ts'
import { type Stores, withStores } from '../operator/core.ts'
import { type CommandOutcome, requireOrganization } from '../operator/operate.ts'
import { rehearsalOutcome } from './outcome.ts'
import { rehearseObservations } from './replay.ts'
import type { RehearsedSessions } from './rows.ts'

export interface UpdateFlags {
  since?: number
  until?: number
  organization?: string
  environment?: Environment
  html?: string
}

/** Says what this release would have decided. It reads the log and the keys of a running server, and writes nothing. */
export function rehearseUpdate(flags: UpdateFlags): Promise<CommandOutcome> {
  return withStores((stores) => rehearse(stores, flags), { opensKeys: true, isReadOnly: true })
}

async function rehearse(stores: Stores, flags: UpdateFlags): Promise<CommandOutcome> {
  const { since = sinceOf('7d'), until = Date.now(), organization, environment, html } = flags
  const found = organization === undefined ? undefined : await requireOrganization(stores.pool, organization)
  const rehearsal = await read(stores, { since, until, environment, organizationId: found?.id })
  const scope = [found?.slug ?? 'all organizations', environment ?? []].flat().join(', ')
  const about = { tried: `Release ${manifest.version}`, since, until, scope }
  return rehearsalOutcome(rehearsal, { about, named: { release: manifest.version }, html })
}

async function read({ log, codec, logger }: Stores, those: RehearsedSessions) {
  const skips = createSkips({ log, codec, logger })
  return rehearseObservations({ log, codec, skips }, those).finally(skips.close)
}
