import { Command } from 'commander'
import { registerDev } from './dev.ts'
import { registerEvents } from './events.ts'
import { registerGate } from './gate/register.ts'
import { registerKeys } from './operator/keys.ts'
import { registerOrganizations } from './operator/organizations.ts'
import { registerRebuild } from './rebuild.ts'
import { registerServe } from './serve.ts'
import { registerSignup } from './signup/command.ts'
import { registerSimulate } from './simulate/command.ts'
import { tellFailure, tellUsage, wantsJson } from './usage.ts'
import { registerWebhooks } from './webhooks/register.ts'

const json = wantsJson(process.argv)
const program = new Command('tidegate').description(
  'Scores sessions for automation and fraud, remembers visitors, signs agents up with consent.',
)
tellUsage(program, { json })

registerDev(program)
registerServe(program)
registerOrganizations(program)
registerKeys(program)
registerGate(program)
registerSimulate(program)
registerSignup(program)
registerWebhooks(program)
registerRebuild(program)
registerEvents(program)

try {
  await program.parseAsync()
} catch (error) {
  tellFailure(error, { json, events: process.argv[2] === 'signup' })
}
