import { type Command, InvalidArgumentError } from 'commander'
import { findDataExpiration, findDataPolicy } from '../../../projections/policies/queries.ts'
import type { DataExpirationRow, RetentionDays } from '../../../projections/policies/tables.ts'
import { setDataPolicy } from '../../organizations/data-policies.ts'
import { type DataPolicyChanges, keptDays } from '../../organizations/decide-data-policy.ts'
import { defaultDays } from '../../organizations/retention-scheduler.ts'
import { dataPolicyJson } from '../../organizations/schemas.ts'
import type { Core } from '../../server/dependencies.ts'
import { jsonFlag, organizationArgument, wordOf } from '../arguments.ts'
import { shownTime, textTable } from '../tables.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  operate,
  requireOrganization,
} from './operate.ts'

type Days = number | 'default' | 'forever'

interface Flags extends OperatorOptions {
  sessions?: Days
  decisions?: Days
  visitors?: Days
  webhooks?: Days
  addresses?: 'full' | 'short'
  minimalMode?: 'allow' | 'refuse'
}

export function policyCommand(org: Command): void {
  org
    .command('policy')
    .description('Show or set what is recorded of its visitors, and for how many days')
    .argument(...organizationArgument)
    .option('--sessions <days>', 'how long sessions stay, or "forever", or "default"', days)
    .option('--decisions <days>', 'their decisions, no longer than they', days)
    .option('--visitors <days>', 'what is known of visitors', days)
    .option('--webhooks <days>', 'webhook events with their deliveries, 7 to 30, or "default"', days)
    .option('--addresses <form>', 'full, or short: IPv4 /24 and IPv6 /48', wordOf('full', 'short'))
    .option(
      '--minimal-mode <word>',
      'allow or refuse pages that leave fingerprints out',
      wordOf('allow', 'refuse'),
    )
    .option(...jsonFlag)
    .action((organization: string, flags: Flags) =>
      operate(flags, async (core) => {
        const { id: organizationId } = await requireOrganization(core.pool, organization)
        await setDataPolicy(asOperator(core, 'org policy'), { organizationId, changes: changesOf(flags) })
        return policyOutcome(core, organizationId)
      }),
    )
}

function days(text: string): Days {
  if (text === 'default' || text === 'forever') return text
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number of days, "forever" or "default".')
}

function changesOf({
  sessions,
  decisions,
  visitors,
  webhooks,
  addresses,
  minimalMode,
}: Flags): DataPolicyChanges {
  return {
    session_days: stored(sessions),
    decision_days: stored(decisions),
    visitor_days: stored(visitors),
    webhook_days: stored(webhooks),
    shortens_addresses: addresses && addresses === 'short',
    allows_minimal_mode: minimalMode && minimalMode === 'allow',
  }
}

function stored(given: Days | undefined): number | null | undefined {
  if (given === 'default') return null
  return given === 'forever' ? 0 : given
}

async function policyOutcome({ pool, config }: Core, organizationId: string): Promise<CommandOutcome> {
  const policy = await findDataPolicy(pool, organizationId)
  const expired = await findDataExpiration(pool, organizationId)
  const kept = keptDays(policy, defaultDays(config))
  const { organization_id: _, ...ended } = expired ?? { organization_id: organizationId }
  const data = { ...dataPolicyJson(policy), kept_days: kept, ended }
  const addresses = policy?.shortens_addresses ? 'short' : 'full'
  const minimal = policy?.allows_minimal_mode ? 'allowed' : 'refused'
  const text = `${keptTable(kept, expired)}\n\nAddresses are recorded in ${addresses}. The minimal mode is ${minimal}.`
  return { data, text }
}

function keptTable(kept: RetentionDays, ended: DataExpirationRow | undefined): string {
  const rows = [
    ['sessions', kept.session_days, ended?.sessions_before],
    ['decisions', kept.decision_days, ended?.decisions_before],
    ['visitors', kept.visitor_days, ended?.visitors_before],
    ['webhooks', kept.webhook_days ?? 30, ended?.webhooks_before],
  ] as const
  return textTable(
    ['what', 'kept', 'ended before'],
    rows.map(([what, stay, before]) => [what, stay ? `${stay} days` : 'for ever', shownTime(before ?? null)]),
  )
}
