import type { Command } from 'commander'
import { allRoles } from '../server/roles.ts'

// A server's modules take longer to load than help takes to print, so that only actions load them.

export function defineDev(command: Command): void {
  command.action(async () => (await import('./dev.ts')).runDev())
}

export function defineServe(command: Command): void {
  command
    .option('--roles <list>', `comma-separated: ${allRoles.join(', ')}`, allRoles.join(','))
    .action(async ({ roles }: { roles: string }) => (await import('./run-server.ts')).runServer(roles))
}
