import { Command } from 'commander'
import { tellFailure, tellUsage, wantsJson } from './failure.ts'

type Register = (program: Command) => void

/** In the order of the help. Loading them all takes longer than most commands: one that is named is loaded alone. */
const commands: Record<string, () => Promise<Register>> = {
  dev: async () => (await import('./dev.ts')).registerDev,
  serve: async () => (await import('./serve.ts')).registerServe,
  org: async () => (await import('./operator/organizations.ts')).registerOrganizations,
  keys: async () => (await import('./operator/keys.ts')).registerKeys,
  gate: async () => (await import('./gate/command.ts')).registerGate,
  simulate: async () => (await import('./simulate/command.ts')).registerSimulate,
  signup: async () => (await import('./signup/command.ts')).registerSignup,
  webhooks: async () => (await import('./webhooks/command.ts')).registerWebhooks,
  rebuild: async () => (await import('./rebuild.ts')).registerRebuild,
  events: async () => (await import('./events.ts')).registerEvents,
}

const json = wantsJson(process.argv)
const program = new Command('tidegate').description(
  'Scores sessions for automation and fraud, remembers visitors, signs agents up with consent.',
)
tellUsage(program, { json })

const word = process.argv[2] ?? ''
const named = Object.hasOwn(commands, word) ? [word] : Object.keys(commands)
for (const name of named) (await commands[name]?.())?.(program)

try {
  await program.parseAsync()
} catch (error) {
  tellFailure(error, { json, events: word === 'signup' })
}
