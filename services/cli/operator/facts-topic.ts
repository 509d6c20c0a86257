import type { Command } from 'commander'
import { noteSince } from '../../facts/store.ts'
import { prepareFactsTopic } from '../../facts/topic.ts'
import { jsonFlag, since } from '../arguments.ts'
import { type OperatorOptions, operate, requireOrganization } from './operate.ts'

interface Flags extends OperatorOptions {
  since: number
  organization?: string
}

export function defineFacts(facts: Command): void {
  facts
    .command('republish')
    .description(
      'Publish rows anew, as after a rebuild that changed them, of organizations that have the topic',
    )
    .requiredOption(
      '--since <time>',
      'those decided from this time on: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z',
      since,
    )
    .option('--organization <organization>', 'only those of it; its id or slug')
    .option(...jsonFlag)
    .action((flags: Flags) =>
      operate(flags, async (core) => {
        await prepareFactsTopic(core)
        const { organization, since } = flags
        const organizationId =
          organization && (await requireOrganization(core.pool, organization)).id
        const sessions = await noteSince(core.pool, { since, organizationId })
        return {
          data: { sessions },
          text: `${sessions} sessions are published anew by the running servers.`,
        }
      }),
    )
}
