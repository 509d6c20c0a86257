import { type Command, InvalidArgumentError } from 'commander'
import { countText } from '../../../infra/text.ts'
import { findDataExpiration, findDataPolicy } from '../../../projections/policies/queries.ts'
import { defaultHiddenFacts } from '../../../projections/sessions/session-facts.ts'
import { createFactsTopic, factsTopic } from '../../facts/topic.ts'
import { setDataPolicy } from '../../organizations/data-policies.ts'
import { retentionOf as retentionDays } from '../../organizations/decide-data-policy.ts'
import { defaultRetentionOf } from '../../organizations/retention-scheduler.ts'
import { dataPolicyJson } from '../../organizations/schemas.ts'
import type { Core } from '../../server/dependencies.ts'
import { choice, commaList, jsonFlag } from '../arguments.ts'
import { tableOf, timeText } from '../tables.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  organizationCommand,
} from './run.ts'

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

export function definePolicy(org: Command): void {
  organizationCommand(
    org,
    {
      name: 'policy',
      description: 'Show or set which visitor data is recorded and for how many days',
    },
    async (
      core,
      organizationId,
      { addresses, minimalMode, hiddenFacts, facts, ...flags }: Flags,
    ) => {
      const changes = {
        session_days: storedDays(flags.sessions),
        decision_days: storedDays(flags.decisions),
        visitor_days: storedDays(flags.visitors),
        webhook_days: storedDays(flags.webhooks),
        shortens_addresses: addresses && addresses === 'short',
        allows_minimal_mode: minimalMode && minimalMode === 'allow',
        hidden_facts: hiddenFacts,
        facts_topic: facts && facts === 'on',
      }
      // Create the topic first: if that fails, the policy stays unchanged.
      if (facts === 'on') await createFactsTopic(core)
      await setDataPolicy(asOperator(core, 'org policy'), { organizationId, changes })
      return policyOutcome(core, organizationId)
    },
  )
    .option('--sessions <days>', 'days to keep sessions: 2 or more, "forever" or "default"', days)
    .option(
      '--decisions <days>',
      'days to keep decisions: 1 or more, at most as long as sessions',
      days,
    )
    .option('--visitors <days>', 'days to keep visitor data: 2 or more', days)
    .option(
      '--webhooks <days>',
      'days to keep webhook events and deliveries: 7 to 30, or "default"',
      days,
    )
    .option(
      '--addresses <form>',
      'IP addresses to record: full, or short (IPv4 /24, IPv6 /48)',
      choice('full', 'short'),
    )
    .option(
      '--minimal-mode <word>',
      'allow or refuse sessions without fingerprints',
      choice('allow', 'refuse'),
    )
    .option(
      '--hidden-facts <columns>',
      'columns of read.session_facts to hide from analysts, comma-separated, or "none" or "default"',
      columns,
    )
    .option(
      '--facts <word>',
      'publish session facts on the Kafka topic tidegate.facts.v1: on or off',
      choice('on', 'off'),
    )
    .option(...jsonFlag)
}

function days(text: string): Days {
  if (text === 'default' || text === 'forever') return text
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number of days, "forever" or "default".')
}

// Returns null for "default", an empty list for "none".
function columns(text: string): string[] | null {
  if (text === 'default') return null
  return text === 'none' ? [] : commaList(text)
}

// Returns the policy's value: null for "default", 0 for "forever".
function storedDays(flag: Days | undefined): number | null | undefined {
  if (flag === 'default') return null
  return flag === 'forever' ? 0 : flag
}

async function policyOutcome(
  { pool, config }: Core,
  organizationId: string,
): Promise<CommandOutcome> {
  const policy = await findDataPolicy(pool, organizationId)
  const expiration = await findDataExpiration(pool, organizationId)
  const retention = retentionDays(policy, defaultRetentionOf(config))
  const { organization_id: _, ...ended } = expiration ?? { organization_id: organizationId }
  const data = { ...dataPolicyJson(policy), kept_days: retention, ended }
  const rows = [
    { name: 'sessions', days: retention.session_days, before: expiration?.sessions_before },
    { name: 'decisions', days: retention.decision_days, before: expiration?.decisions_before },
    { name: 'visitors', days: retention.visitor_days, before: expiration?.visitors_before },
    { name: 'webhooks', days: retention.webhook_days ?? 30, before: expiration?.webhooks_before },
  ]
  const table = tableOf(rows, {
    data: ({ name }) => name,
    kept: ({ days }) => (days ? countText(days, 'day') : 'forever'),
    'deleted before': ({ before }) => timeText(before ?? null),
  })
  const addresses = policy?.shortens_addresses ? 'short' : 'full'
  const minimal = policy?.allows_minimal_mode ? 'allowed' : 'refused'
  const hidden = (policy?.hidden_facts ?? defaultHiddenFacts).join(', ') || 'nothing'
  const published = policy?.facts_topic
    ? ` Session facts are published on ${factsTopic} without these columns.`
    : ''
  return {
    data,
    text: `${table}\n\nIP addresses: ${addresses}. Minimal mode: ${minimal}. Hidden from analysts: ${hidden}.${published}`,
  }
}
