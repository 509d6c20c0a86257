import type { Command } from 'commander'
import type { Config } from '../../../infra/config.ts'
import { findOrganization, listOrganizations } from '../../../projections/organizations/queries.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { changeOrganization, createOrganization } from '../../organizations/commands.ts'
import {
  capabilities,
  decideCapability,
  decideLimits,
  decideOrganizationUpdate,
} from '../../organizations/decide-organization.ts'
import { organizationJson } from '../../organizations/schemas.ts'
import type { Core } from '../../server/dependencies.ts'
import { jsonFlag, limit, wholeNumber } from '../arguments.ts'
import { organizationTable } from '../tables.ts'
import { defineAgentDirectories } from './agent-directories.ts'
import { definePolicy } from './data-policy.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  organizationCommand,
  requireOrganization,
  runAndPrint,
} from './run.ts'

export function defineOrganizations(org: Command): void {
  org
    .command('create')
    .description('Create an organization; then create its keys with "tidegate keys create"')
    .requiredOption('--name <name>', '1-120 characters')
    .requiredOption('--slug <slug>', '1-63 lower-case letters, digits and hyphens; unique')
    .option(...jsonFlag)
    .action((options: OperatorOptions & { name: string; slug: string }, command: Command) =>
      runAndPrint(
        options,
        async (core) =>
          organizationOutcome(
            core,
            (await createOrganization(asOperator(core, 'org create'), options)).organizationId,
          ),
        command,
      ),
    )
  org
    .command('list')
    .description('List all organizations, newest first')
    .option(...jsonFlag)
    .action((options: OperatorOptions) =>
      runAndPrint(options, async ({ pool, config }) => {
        const organizations = await listOrganizations(pool)
        return {
          data: organizations.map(operatorJson),
          text: organizationTable(organizations, defaultsOf(config)),
        }
      }),
    )
  const suspend = {
    name: 'suspend',
    description: 'Suspend an organization: reject every request with its keys',
  }
  statusCommand(org, { ...suspend, status: 'suspended' })
  const reactivate = { name: 'reactivate', description: 'Reactivate a suspended organization' }
  statusCommand(org, { ...reactivate, status: 'active' })
  limitsCommand(org)
  definePolicy(org)
  defineAgentDirectories(org)
  capabilityCommand(org, { name: 'enable', enabled: true })
  capabilityCommand(org, { name: 'disable', enabled: false })
}

function statusCommand(
  org: Command,
  { status, ...command }: { name: string; status: 'active' | 'suspended'; description: string },
): void {
  organizationCommand(org, command, async (core, organizationId) => {
    await changeOrganization(asOperator(core, `org ${command.name}`), organizationId, (row, at) =>
      decideOrganizationUpdate(row, { status, by: 'operator', ...at }),
    )
    return organizationOutcome(core, organizationId)
  }).option(...jsonFlag)
}

interface LimitFlags extends OperatorOptions {
  secret?: number | 'default'
  publishable?: number | 'default'
  maxKeyDays?: number | 'unlimited'
}

const limitOf = (flag: number | string | undefined) => (typeof flag === 'string' ? null : flag)

function limitsCommand(org: Command): void {
  organizationCommand(
    org,
    {
      name: 'limits',
      description:
        'Show or set the rate limits of an organization, in units per 60 seconds, and the maximum lifetime of its new keys',
    },
    async (core, organizationId, { secret, publishable, maxKeyDays }: LimitFlags) => {
      const limits = {
        secret_limit: limitOf(secret),
        publishable_limit: limitOf(publishable),
        max_key_days: limitOf(maxKeyDays),
      }
      if (Object.values(limits).some((value) => value !== undefined))
        await changeOrganization(asOperator(core, 'org limits'), organizationId, (row, at) =>
          decideLimits(row, { ...limits, ...at }),
        )
      return organizationOutcome(core, organizationId)
    },
  )
    .option('--secret <units>', 'limit shared by its secret keys, or "default"', limit)
    .option('--publishable <units>', 'limit shared by its publishable keys, or "default"', limit)
    .option(
      '--max-key-days <days>',
      'maximum lifetime of new keys in days, or "unlimited"; existing keys keep theirs',
      (text) => (text === 'unlimited' ? text : wholeNumber(text)),
    )
    .option(...jsonFlag)
}

function capabilityCommand(
  org: Command,
  { name, enabled }: { name: string; enabled: boolean },
): void {
  org
    .command(name)
    .description(
      `Turn ${enabled ? 'on' : 'off'} an optional capability: ${capabilities.join(', ')}`,
    )
    .argument('<organization>', 'organization id or slug')
    .argument('<capability>', `one of ${capabilities.join(', ')}`)
    .option(...jsonFlag)
    .action((organization: string, capability: string, options: OperatorOptions) =>
      runAndPrint(options, async (core) => {
        const { id: organizationId } = await requireOrganization(core.pool, organization)
        await changeOrganization(asOperator(core, `org ${name}`), organizationId, (row, at) =>
          decideCapability(row, { capability, enabled, ...at }),
        )
        return organizationOutcome(core, organizationId)
      }),
    )
}

async function organizationOutcome(
  { pool, config }: Core,
  organizationId: string,
): Promise<CommandOutcome> {
  const organization = await findOrganization(pool, organizationId)
  if (!organization) throw new Error(`${organizationId} is not in the read model`)
  return {
    data: operatorJson(organization),
    text: organizationTable([organization], defaultsOf(config)),
  }
}

const defaultsOf = ({
  RATE_LIMIT_SECRET: secret,
  RATE_LIMIT_PUBLISHABLE: publishable,
}: Config) => ({
  secret,
  publishable,
})

// Returns the API's JSON with the members that only operators see. A null limit is the server's default.
function operatorJson(organization: OrganizationRow) {
  const { secret_limit, publishable_limit, max_key_days, capabilities: enabled } = organization
  return {
    ...organizationJson(organization),
    secret_limit,
    publishable_limit,
    max_key_days,
    capabilities: enabled,
  }
}
