import type { Command } from 'commander'
import { findAgentDirectories } from '../../../projections/policies/queries.ts'
import { addAgentDirectory, removeAgentDirectory } from '../../organizations/agent-directories.ts'
import { directoryJson } from '../../organizations/agent-directory-routes.ts'
import { jsonFlag } from '../arguments.ts'
import { tableOf, timeText } from '../tables.ts'
import { asOperator, type OperatorOptions, organizationCommand } from './run.ts'

interface Flags extends OperatorOptions {
  add?: string
  name?: string
  remove?: string
}

export function defineAgentDirectories(org: Command): void {
  organizationCommand(
    org,
    { name: 'agents', description: 'Show or change the trusted key directories of signed agents' },
    async (core, organizationId, { add, name, remove }: Flags) => {
      const deps = asOperator(core, 'org agents')
      const request = { organizationId, by: 'operator' } as const
      if (name !== undefined && add === undefined)
        throw new Error('--name needs --add: it names the directory that is added')
      if (add !== undefined) await addAgentDirectory(deps, { ...request, domain: add, name })
      if (remove !== undefined) await removeAgentDirectory(deps, { ...request, domain: remove })
      const directories = await findAgentDirectories(core.pool, organizationId)
      const table = tableOf(directories, {
        domain: ({ domain }) => domain,
        name: (directory) => directory.name ?? '',
        added: ({ changed_at }) => timeText(changed_at),
      })
      return {
        data: directories.map(directoryJson),
        text: directories.length > 0 ? table : 'None.',
      }
    },
  )
    .option(
      '--add <domain>',
      'trust agents that sign with the keys of this domain, such as agent.example; repeat to rename',
    )
    .option(
      '--name <name>',
      'name of its agents in sessions, 1-100 characters (default: the domain)',
    )
    .option('--remove <domain>', 'stop trusting this domain')
    .option(...jsonFlag)
}
