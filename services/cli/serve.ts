import type { Command } from 'commander'
import { allRoles } from '../server/roles.ts'

// Server modules load slowly, so only the actions import them: --help stays fast.

export function defineDev(command: Command): void {
  command.action(async () => (await import('./dev.ts')).runDev())
}

export function defineServe(command: Command): void {
  withRoles(command)
    .option(
      '--take-over-log',
      'claim the log for this database; servers on the database that holds the claim stop',
      false,
    )
    .action(async ({ roles, takeOverLog }) =>
      (await import('./run-server.ts')).runServer(roles, { takeOverLog }),
    )
}

export function defineConfig(command: Command): void {
  const check = command.command('check')
  check.description(
    'Check that a server with these roles could start with the settings in the environment',
  )
  check.option(
    '--connect',
    'also connect to the database and the log, and try the master keys',
    false,
  )
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
    `roles to run, comma-separated: ${allRoles.join(', ')}`,
    allRoles.join(','),
  )
}
