import { type Command, InvalidArgumentError } from 'commander'
import { findDataExpiration, findDataPolicy } from '../../../projections/policies/queries.ts'
import { defaultHidden } from '../../../projections/sessions/session-facts.ts'
import { factsTopic, prepareFactsTopic } from '../../facts/topic.ts'
import { setDataPolicy } from '../../organizations/data-policies.ts'
import { retentionOf as retentionDays } from '../../organizations/decide-data-policy.ts'
import { defaultDays } from '../../organizations/retention-scheduler.ts'
import { dataPolicyJson } from '../../organizations/schemas.ts'
import type { Core } from '../../server/dependencies.ts'
import { commaList, jsonFlag, wordOf } from '../arguments.ts'
import { tableOf, timeText } from '../tables.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  organizationCommand,
} from './operate.ts'

type Days = number | 'default' | 'forever'

interface Flags extends OperatorOptions {
  sessions?: Days
  decisions?: Days
  visitors?: Days
  webhooks?: Days
  addresses?: 'full' | 'short'
  minimalMode?: 'allow' | 'refuse'
  hiddenFacts?: string[] | null
  facts?: 'on' | 'off'
}

export function policyCommand(org: Command): void {
  organizationCommand(
    org,
    { name: 'policy', does: 'Show or set what is recorded of its visitors, and for how many days' },
    async (
      core,
      organizationId,
      { addresses, minimalMode, hiddenFacts, facts, ...flags }: Flags,
    ) => {
      const changes = {
        session_days: stored(flags.sessions),
        decision_days: stored(flags.decisions),
        visitor_days: stored(flags.visitors),
        webhook_days: stored(flags.webhooks),
        shortens_addresses: addresses && addresses === 'short',
        allows_minimal_mode: minimalMode && minimalMode === 'allow',
        hidden_facts: hiddenFacts,
        facts_topic: facts && facts === 'on',
      }
      // Where it cannot be made, nothing is promised.
      if (facts === 'on') await prepareFactsTopic(core)
      await setDataPolicy(asOperator(core, 'org policy'), { organizationId, changes })
      return policyOutcome(core, organizationId)
    },
  )
    .option(
      '--sessions <days>',
      'how long sessions stay, 2 or more, or "forever", or "default"',
      days,
    )
    .option('--decisions <days>', 'their decisions, 1 or more, and no longer than they', days)
    .option('--visitors <days>', 'what is known of visitors, 2 or more', days)
    .option(
      '--webhooks <days>',
      'webhook events with their deliveries, 7 to 30, or "default"',
      days,
    )
    .option('--addresses <form>', 'full, or short: IPv4 /24 and IPv6 /48', wordOf('full', 'short'))
    .option(
      '--minimal-mode <word>',
      'allow or refuse pages that leave fingerprints out',
      wordOf('allow', 'refuse'),
    )
    .option(
      '--hidden-facts <columns>',
      'columns of read.session_facts that analysts do not see, separated by commas, or "none", or "default"',
      columns,
    )
    .option(
      '--facts <word>',
      'on or off: its flat rows on the Kafka topic tidegate.facts.v1',
      wordOf('on', 'off'),
    )
    .option(...jsonFlag)
}

function days(text: string): Days {
  if (text === 'default' || text === 'forever') return text
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number of days, "forever" or "default".')
}

// null is the default.
function columns(text: string): string[] | null {
  if (text === 'default') return null
  return text === 'none' ? [] : commaList(text)
}

// As the policy has it: null is the default, and 0 for ever.
function stored(flag: Days | undefined): number | null | undefined {
  if (flag === 'default') return null
  return flag === 'forever' ? 0 : flag
}

async function policyOutcome(
  { pool, config }: Core,
  organizationId: string,
): Promise<CommandOutcome> {
  const policy = await findDataPolicy(pool, organizationId)
  const expired = await findDataExpiration(pool, organizationId)
  const retention = retentionDays(policy, defaultDays(config))
  const { organization_id: _, ...ended } = expired ?? { organization_id: organizationId }
  const data = { ...dataPolicyJson(policy), kept_days: retention, ended }
  const rows = [
    { what: 'sessions', days: retention.session_days, before: expired?.sessions_before },
    { what: 'decisions', days: retention.decision_days, before: expired?.decisions_before },
    { what: 'visitors', days: retention.visitor_days, before: expired?.visitors_before },
    { what: 'webhooks', days: retention.webhook_days ?? 30, before: expired?.webhooks_before },
  ]
  const table = tableOf(rows, {
    what: ({ what }) => what,
    kept: ({ days }) => (days ? `${days} days` : 'for ever'),
    'ended before': ({ before }) => timeText(before ?? null),
  })
  const addresses = policy?.shortens_addresses ? 'short' : 'full'
  const minimal = policy?.allows_minimal_mode ? 'allowed' : 'refused'
  const hidden = (policy?.hidden_facts ?? defaultHidden).join(', ') || 'nothing'
  const published = policy?.facts_topic ? ` Its rows are on ${factsTopic}, without these.` : ''
  return {
    data,
    text: `${table}\n\nAddresses are recorded in ${addresses}. The minimal mode is ${minimal}. Analysts do not see ${hidden}.${published}`,
  }
}
