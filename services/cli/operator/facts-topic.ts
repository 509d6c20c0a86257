import type { Command } from 'commander'
import { countText } from '../../../infra/text.ts'
import { enqueueScoredSince } from '../../facts/outbox.ts'
import { createFactsTopic } from '../../facts/topic.ts'
import { jsonFlag, since } from '../arguments.ts'
import { type OperatorOptions, requireOrganization, runAndPrint } from './run.ts'

interface Flags extends OperatorOptions {
  since: number
  organization?: string
}

export function defineFacts(facts: Command): void {
  facts
    .command('republish')
    .description('Publish session facts again, for example after a rebuild changed them')
    .requiredOption(
      '--since <time>',
      'only sessions scored since: 7d, 24h, 2026-11-23 or 2026-11-23T12:00:00Z',
      since,
    )
    .option(
      '--organization <organization>',
      'id or slug of the organization (default: all that have the topic)',
    )
    .option(...jsonFlag)
    .action((flags: Flags) =>
      runAndPrint(flags, async (core) => {
        await createFactsTopic(core)
        const { organization, since } = flags
        const organizationId =
          organization && (await requireOrganization(core.pool, organization)).id
        const sessions = await enqueueScoredSince(core.pool, { since, organizationId })
        return {
          data: { sessions },
          text: `Queued ${countText(sessions, 'session')}. Running servers publish them.`,
        }
      }),
    )
}
