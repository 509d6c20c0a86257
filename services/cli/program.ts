import { Command, CommanderError } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { commandLine } from './command-line.ts'
import { commands } from './commands.ts'
import { configureUsageErrors, wantsJson } from './usage.ts'

const json = wantsJson(process.argv)
const program = new Command('tidegate')
  .description('Scores sessions for automation and fraud, and recognizes returning visitors.')
  .version(manifest.version)
configureUsageErrors(program, { json })
program.commandsGroup('Other:')

const [first, second] = process.argv.slice(2)
const commandName = first === 'help' ? second : first
for (const [name, { group, summary, example, load }] of Object.entries(commands)) {
  const command = program.command(name).description(summary).helpGroup(`${group}:`)
  command.addHelpText('after', `\nExample:\n  ${commandLine(...example.split(' '))}`)
  if (name === commandName) (await load())(command)
}

try {
  await program.parseAsync()
} catch (error) {
  // Commander also throws after it prints the help or the version.
  const isHelp = error instanceof CommanderError && error.exitCode === 0
  const { reportFailure } = await import('./failure.ts')
  if (!isHelp && commandName === 'signup')
    (await import('./signup/failure.ts')).reportSignupFailure(error, { json })
  else if (!isHelp) reportFailure(error, { json })
}

// Exits even if kafkajs leaves a connection open, which can last for ten minutes.
setTimeout(() => process.exit(), 2000).unref()
