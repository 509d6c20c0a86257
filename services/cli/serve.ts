import type { Command } from 'commander'
import { allRoles } from '../server/roles.ts'

// A server's modules take longer to load than help takes to print, so that only actions load them.

export function defineDev(command: Command): void {
  command.action(async () => (await import('./dev.ts')).runDev())
}

export function defineServe(command: Command): void {
  withRoles(command)
    .option(
      '--take-over-log',
      'take the log from the database that has claimed it, whose servers then stop',
      false,
    )
    .action(async ({ roles, takeOverLog }) =>
      (await import('./run-server.ts')).runServer(roles, { takeOverLog }),
    )
}

export function defineConfig(command: Command): void {
  const check = command.command('check')
  check.description(
    'Whether a server with the roles could start with the settings of the environment',
  )
  check.option('--connect', 'also try the database, the log and the master keys', false)
  withRoles(check).action(async ({ roles, connect }) => {
    const { checkServerSettings } = await import('./server-settings.ts')
    const settings = await checkServerSettings({ env: process.env, roles })
    for (const warning of settings.warnings) console.log(`warning: ${warning}`)
    console.log('The settings are valid.')
    if (connect) await (await import('./try-connections.ts')).tryConnections(settings)
  })
}

function withRoles(command: Command): Command {
  return command.option(
    '--roles <list>',
    `comma-separated: ${allRoles.join(', ')}`,
    allRoles.join(','),
  )
}
