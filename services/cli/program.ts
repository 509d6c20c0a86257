import { Command, CommanderError } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { commands } from './commands.ts'
import { commandLine } from './typed.ts'
import { configureUsageErrors, wantsJson } from './usage.ts'

const json = wantsJson(process.argv)
const program = new Command('tidegate')
  .description('Scores sessions for automation and fraud, and recognizes returning visitors.')
  .version(manifest.version)
configureUsageErrors(program, { json })
program.commandsGroup('Other:')

const [first, second] = process.argv.slice(2)
const word = first === 'help' ? second : first
for (const [name, { group, does, example, load }] of Object.entries(commands)) {
  const command = program.command(name).description(does).helpGroup(`${group}:`)
  command.addHelpText('after', `\nExample:\n  ${commandLine(...example.split(' '))}`)
  if (name === word) (await load())(command)
}

try {
  await program.parseAsync()
} catch (error) {
  // Help or the version is thrown, too, once it is printed.
  const isHelp = error instanceof CommanderError && error.exitCode === 0
  const { reportFailure } = await import('./failure.ts')
  if (!isHelp && word === 'signup')
    (await import('./signup/failure.ts')).reportSignupFailure(error, { json })
  else if (!isHelp) reportFailure(error, { json })
}

// A command that is done ends, whatever connection kafkajs still has open. One stayed for ten minutes.
setTimeout(() => process.exit(), 2000).unref()
