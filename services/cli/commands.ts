import type { Command } from 'commander'

interface NamedCommand {
  group: 'Develop' | 'Operate' | 'Data' | 'Recover'
  summary: string
  /** Example arguments, for a development server or a file of the user. */
  example: string
  /** Resolves to a function that adds the options, subcommands and action. */
  load(): Promise<(command: Command) => void>
}

/** Commands in the order of the help. Load only the one that runs: loading all takes longer than most commands run. */
export const commands: Record<string, NamedCommand> = {
  dev: {
    group: 'Develop',
    summary: 'Run everything on this machine, with its own Postgres and a development organization',
    example: 'dev',
    load: async () => (await import('./serve.ts')).defineDev,
  },
  simulate: {
    group: 'Develop',
    summary: 'Send synthetic sessions and measure the server',
    example: 'simulate --sessions 20 --verify',
    load: async () => (await import('./simulate/command.ts')).defineSimulate,
  },
  learn: {
    group: 'Develop',
    summary: 'Teach the server the JavaScript engines of your browsers',
    example: 'learn --open',
    load: async () => (await import('./learn.ts')).defineLearn,
  },
  signup: {
    group: 'Develop',
    summary: 'Sign up for a service; a person approves in a browser',
    example: 'signup acme --env-file .env',
    load: async () => (await import('./signup/command.ts')).defineSignup,
  },
  gate: {
    group: 'Develop',
    summary: 'Verify services for Gate, and run a sample service',
    example: 'gate dev-integrator',
    load: async () => (await import('./gate/command.ts')).defineGate,
  },
  webhooks: {
    group: 'Develop',
    summary: 'Receive, trigger and redeliver webhooks',
    example: 'webhooks listen',
    load: async () => (await import('./webhooks/command.ts')).defineWebhooks,
  },
  events: {
    group: 'Develop',
    summary: 'Print the events of a topic as JSON lines',
    example: 'events --topic tidegate.sessions.v1 --since 1h',
    load: async () => (await import('./events.ts')).defineEvents,
  },
  serve: {
    group: 'Operate',
    summary: 'Run some or all roles on your own Postgres and Kafka',
    example: 'serve --roles api,collect',
    load: async () => (await import('./serve.ts')).defineServe,
  },
  config: {
    group: 'Operate',
    summary: 'Check the settings without starting anything',
    example: 'config check',
    load: async () => (await import('./serve.ts')).defineConfig,
  },
  migrate: {
    group: 'Operate',
    summary: 'Create the tables and topics of this version, and grant rights to a database user',
    example: 'migrate',
    load: async () => (await import('./migrate.ts')).defineMigrate,
  },
  org: {
    group: 'Operate',
    summary: 'Create, list, limit and suspend organizations',
    example: 'org create --name Acme --slug acme',
    load: async () => (await import('./operator/organizations.ts')).defineOrganizations,
  },
  keys: {
    group: 'Operate',
    summary: 'Create, list, rotate and revoke API keys',
    example: 'keys create acme --name Server --type secret',
    load: async () => (await import('./operator/keys.ts')).defineKeys,
  },
  console: {
    group: 'Operate',
    summary: 'Print a login link for the console',
    example: 'console login acme --role admin --environment both --name Ann',
    load: async () => (await import('./operator/console.ts')).defineConsole,
  },
  audit: {
    group: 'Operate',
    summary: 'Print who did what: keys, operators, people, agents and the server',
    example: 'audit --since 24h',
    load: async () => (await import('./operator/audit.ts')).defineAudit,
  },
  visitors: {
    group: 'Operate',
    summary: 'Explain why a session was matched to its visitor',
    example: 'visitors explain sid_...',
    load: async () => (await import('./operator/visitors.ts')).defineVisitors,
  },
  marks: {
    group: 'Data',
    summary: 'Import and export session labels as CSV',
    example: 'marks import marks.csv --organization acme',
    load: async () => (await import('./operator/marks.ts')).defineMarks,
  },
  export: {
    group: 'Data',
    summary: 'Export sessions or events as Parquet, JSON lines or CSV',
    example: 'export sessions --since 7d --out sessions.parquet',
    load: async () => (await import('./export/command.ts')).defineExport,
  },
  project: {
    group: 'Data',
    summary: 'Fill your own tables from the events',
    example: 'project ./my-view.ts --new',
    load: async () => (await import('./project/command.ts')).defineProject,
  },
  rescore: {
    group: 'Data',
    summary: 'Test a changed scoring model on recorded sessions, and switch to it',
    example: 'rescore --model model.json --since 7d',
    load: async () => (await import('./rescore/command.ts')).defineRescore,
  },
  facts: {
    group: 'Data',
    summary: 'Publish session facts again on their Kafka topic',
    example: 'facts republish --since 7d',
    load: async () => (await import('./operator/facts-topic.ts')).defineFacts,
  },
  data: {
    group: 'Data',
    summary: 'Update the IP data, and show how old it is',
    example: 'data update',
    load: async () => (await import('./data/command.ts')).defineData,
  },
  rebuild: {
    group: 'Recover',
    summary: 'Rebuild a read model beside the live one, compare them, and switch',
    example: 'rebuild sessions',
    load: async () => (await import('./rebuild.ts')).defineRebuild,
  },
  restore: {
    group: 'Recover',
    summary: 'Fill an empty database from the log before servers start on it',
    example: 'restore',
    load: async () => (await import('./restore.ts')).defineRestore,
  },
  'data-keys': {
    group: 'Recover',
    summary: 'Back up, restore and reseal the keys that encrypt personal data in events',
    example: 'data-keys backup keys.backup',
    load: async () => (await import('./data-keys.ts')).defineDataKeys,
  },
  log: {
    group: 'Recover',
    summary: 'Skip an unreadable record, list skipped ones, or move the log to Kafka',
    example: 'log skipped',
    load: async () => (await import('./log.ts')).defineLog,
  },
}
