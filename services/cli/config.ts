import type { Command } from 'commander'
import { allRoles } from '../server/roles.ts'

export function defineConfig(command: Command): void {
  command
    .command('check')
    .description('Whether a server with the roles could start with the settings of the environment')
    .option('--roles <list>', `comma-separated: ${allRoles.join(', ')}`, allRoles.join(','))
    .action(async ({ roles }: { roles: string }) => {
      const { readServerSettings } = await import('./server-settings.ts')
      const { warnings } = await readServerSettings({ env: process.env, roles })
      for (const warning of warnings) console.log(`warning: ${warning}`)
      console.log('The settings are valid.')
    })
}
