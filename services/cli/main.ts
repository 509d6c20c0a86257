import { Command } from 'commander'
import { registerDev } from './dev.ts'
import { registerEvents } from './events.ts'
import { tellFailure, tellUsage, wantsJson } from './failure.ts'
import { registerGate } from './gate/command.ts'
import { registerKeys } from './operator/keys.ts'
import { registerOrganizations } from './operator/organizations.ts'
import { registerRebuild } from './rebuild.ts'
import { registerServe } from './serve.ts'
import { registerSignup } from './signup/command.ts'
import { registerSimulate } from './simulate/command.ts'
import { registerDeadLetters, registerRedeliver } from './webhooks/deliveries.ts'
import { registerListen } from './webhooks/listen.ts'
import { registerTrigger } from './webhooks/trigger.ts'

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

export function registerWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description('Receive, trigger and redeliver webhooks, and list what could not be delivered')
  registerListen(webhooks)
  registerTrigger(webhooks)
  registerRedeliver(webhooks)
  registerDeadLetters(webhooks)
}
