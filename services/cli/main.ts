import { Command } from 'commander'
import { registerDev } from './dev.ts'
import { registerEvents } from './events.ts'
import { registerKeys } from './operator/keys.ts'
import { registerOrganizations } from './operator/organizations.ts'
import { registerRebuild } from './rebuild.ts'
import { registerServe } from './serve.ts'
import { registerSimulate } from './simulate/command.ts'

const program = new Command('tidegate')
  .description('Scores sessions for automation and fraud, remembers visitors, signs agents up with consent.')
  .showHelpAfterError()

registerDev(program)
registerServe(program)
registerOrganizations(program)
registerKeys(program)
registerSimulate(program)
registerRebuild(program)
registerEvents(program)

try {
  await program.parseAsync()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
