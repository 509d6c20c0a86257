import { Command, CommanderError } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { tellUsage, wantsJson } from './usage.ts'

interface NamedCommand {
  does: string
  // Adds its options, subcommands and action.
  load(): Promise<(command: Command) => void>
}

// In the order of the help. Only the command that is named is loaded, because loading all takes longer than most of them.
const commands: Record<string, NamedCommand> = {
  dev: {
    does: 'Run everything on this machine, with an embedded Postgres and a development organization',
    load: async () => (await import('./serve.ts')).defineDev,
  },
  serve: {
    does: 'Run some or all roles against an existing database and log',
    load: async () => (await import('./serve.ts')).defineServe,
  },
  config: {
    does: 'Check the settings, and start nothing',
    load: async () => (await import('./serve.ts')).defineConfig,
  },
  migrate: {
    does: 'Make the tables and topics of this version, and give a user the rights that servers need',
    load: async () => (await import('./migrate.ts')).defineMigrate,
  },
  org: {
    does: 'Create, list, limit and suspend organizations',
    load: async () => (await import('./operator/organizations.ts')).defineOrganizations,
  },
  keys: {
    does: "Create, list, rotate and revoke an organization's API keys",
    load: async () => (await import('./operator/keys.ts')).defineKeys,
  },
  facts: {
    does: 'Publish rows of sessions anew on the topic of facts',
    load: async () => (await import('./operator/facts-topic.ts')).defineFacts,
  },
  console: {
    does: 'Print a link that logs somebody in to the console of a server',
    load: async () => (await import('./operator/console.ts')).defineConsole,
  },
  audit: {
    does: 'Print who did what: keys, operators, people, agents and the server itself',
    load: async () => (await import('./operator/audit.ts')).defineAudit,
  },
  visitors: {
    does: 'Say why a session is of its visitor',
    load: async () => (await import('./operator/visitors.ts')).defineVisitors,
  },
  marks: {
    does: 'Say what sessions really were, from a CSV file, and print it',
    load: async () => (await import('./operator/marks.ts')).defineMarks,
  },
  gate: {
    does: 'Verify services that agents sign up for, and run a sample one',
    load: async () => (await import('./gate/command.ts')).defineGate,
  },
  simulate: {
    does: 'Send synthetic sessions through the collect protocol and measure it',
    load: async () => (await import('./simulate/command.ts')).defineSimulate,
  },
  signup: {
    does: 'Sign up for a service; a person approves in a browser',
    load: async () => (await import('./signup/command.ts')).defineSignup,
  },
  webhooks: {
    does: 'Receive, trigger and redeliver webhooks, and list what could not be delivered',
    load: async () => (await import('./webhooks/command.ts')).defineWebhooks,
  },
  rebuild: {
    does: 'Build a read model anew beside the live one, compare the two, then switch',
    load: async () => (await import('./rebuild.ts')).defineRebuild,
  },
  project: {
    does: 'Fill tables of your own from the events, by a file that says how',
    load: async () => (await import('./project/command.ts')).defineProject,
  },
  rescore: {
    does: 'Try a changed scoring model on recorded sessions, then decide by it or by the one before',
    load: async () => (await import('./rescore/command.ts')).defineRescore,
  },
  learn: {
    does: "Let browsers of yours answer the deployment's own questions, so that they need not be learned from visitors",
    load: async () => (await import('./learn.ts')).defineLearn,
  },
  restore: {
    does: 'Fill an empty database from the log, before servers start on it',
    load: async () => (await import('./restore.ts')).defineRestore,
  },
  data: {
    does: 'Bring what is known of addresses up to date, and say how old it is',
    load: async () => (await import('./data/command.ts')).defineData,
  },
  'data-keys': {
    does: 'Back up and restore the keys that events of sessions are encrypted under, and seal them anew',
    load: async () => (await import('./data-keys.ts')).defineDataKeys,
  },
  log: {
    does: 'Leave a record out that cannot be read, list those that were, and move to Kafka',
    load: async () => (await import('./log.ts')).defineLog,
  },
  export: {
    does: 'Write flat rows of sessions, or events of a topic, into files of Parquet, JSON lines or CSV',
    load: async () => (await import('./export/command.ts')).defineExport,
  },
  events: {
    does: 'Print the events of a topic as JSON lines, oldest first within a partition',
    load: async () => (await import('./events.ts')).defineEvents,
  },
}

const json = wantsJson(process.argv)
const program = new Command('tidegate')
  .description(
    'Scores sessions for automation and fraud, remembers visitors, signs agents up with consent.',
  )
  .version(manifest.version)
tellUsage(program, { json })

const [first, second] = process.argv.slice(2)
const word = first === 'help' ? second : first
for (const [name, { does, load }] of Object.entries(commands)) {
  const command = program.command(name).description(does)
  if (name === word) (await load())(command)
}

try {
  await program.parseAsync()
} catch (error) {
  // Help or the version is thrown, too, once it is printed.
  const isHelp = error instanceof CommanderError && error.exitCode === 0
  const { reportFailure } = await import('./failure.ts')
  if (!isHelp && word === 'signup')
    (await import('./signup/failure.ts')).tellSignupFailure(error, { json })
  else if (!isHelp) reportFailure(error, { json })
}

// A command that is done ends, whatever connection kafkajs still has open. One stayed for ten minutes.
setTimeout(() => process.exit(), 2000).unref()
