import { Argument, type Command, Option } from 'commander'
import { baseUrl } from '../arguments.ts'
import { commandLine } from '../command-line.ts'
import type { SignupFlags } from './run.ts'
import { keyValue, secondsArgument, serviceIdArgument } from './settings.ts'

const help = `
${commandLine('signup')} <service>         requests an account; credentials are written to .env.<service>
${commandLine('signup')} <service> login   opens the account's dashboard with the agent token from that file
${commandLine('signup', 'list')}              lists the services

With --json, standard output has one JSON document per line.
  signup   {"event": "consent_required", ...}, then possibly "warning", "claim_required" (approved: type the code that
           the page shows, or write it to "code_file") and "in_progress" (approved: the service is creating the
           account), and finally "approved" or "failed"
  login    {"event": "consent_required", ...}
  list     {"data": [...]}
Every failure is {"event": "failed", "error": {...}} with exit code 1.`

export function defineSignup(command: Command): void {
  const flag = '--base-url <url>'
  const id = serviceIdArgument({ command, label: "argument '<service>'" })
  command
    .addArgument(new Argument('<service>', 'service id, or "list"').argParser(id))
    .addArgument(new Argument('[action]', '"login" opens the dashboard instead').choices(['login']))
    .option(
      flag,
      'URL of the server (default: TIDEGATE_URL, or a running tidegate dev)',
      baseUrl({ command, flag }),
    )
    .option(
      '--account-name <name>',
      "name of the account (default: git's user.name, or the folder name)",
    )
    .option('--env-file <path>', 'new file for the credentials (default: .env.<service>)')
    .addOption(
      new Option(
        '--stdout',
        'print the credentials to standard output, and everything else to standard error',
      ).conflicts(['envFile', 'json']),
    )
    .option('--metadata <key=value>', 'metadata for the service; repeat up to five times', keyValue)
    .option('--no-open', 'do not open a browser')
    .option('--timeout <seconds>', 'give up after this time', secondsArgument)
    .option(
      '--code-file <path>',
      'file to read the code of the consent page from, instead of typing it',
    )
    .option('--json', 'print a JSON line for each event', false)
    .addHelpText('after', help)
    .action(async (service: string, action: 'login' | undefined, flags: SignupFlags) => {
      rejectUnusedOptions(command, service === 'list' && !action ? 'list' : action)
      const { runSignup } = await import('./run.ts')
      return runSignup(service, action, flags)
    })
}

const allowedOptions = {
  login: ['baseUrl', 'envFile', 'open', 'json'],
  list: ['baseUrl', 'json'],
}

function rejectUnusedOptions(command: Command, action: 'login' | 'list' | undefined): void {
  if (!action) return
  const unused = command.options.find((option) => {
    const name = option.attributeName()
    return command.getOptionValueSource(name) === 'cli' && !allowedOptions[action].includes(name)
  })
  if (unused) command.error(`error: option '${unused.flags}' cannot be used with ${action}`)
}
