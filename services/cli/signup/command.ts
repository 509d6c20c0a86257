import { Argument, type Command, Option } from 'commander'
import { baseUrl } from '../arguments.ts'
import { typed } from '../typed.ts'
import type { SignupFlags } from './run.ts'
import { metadata, seconds, serviceId } from './settings.ts'

const help = `
${typed('signup')} <service>         asks for an account; credentials end up in .env.<service>
${typed('signup')} <service> login   opens the dashboard of an account, with the agent token in that file
${typed('signup', 'list')}              shows what there is to sign up for

With --json standard output has one JSON document a line. A signup: {"event": "consent_required", ...}, perhaps
"warning", "claim_required" (a person has approved and is shown a code: to be typed, or written
to its "code_file") and "in_progress" (a person has approved, the service makes the account), at the end "approved" or "failed".
A login: "consent_required". list: {"data": [...]}. Whatever fails: {"event": "failed", "error": {...}}, exit code 1.`

export function defineSignup(command: Command): void {
  const flag = '--base-url <url>'
  const id = serviceId({ command, of: "argument '<service>'" })
  command
    .addArgument(new Argument('<service>', 'its id, or "list"').argParser(id))
    .addArgument(new Argument('[action]', '"login" opens its dashboard instead').choices(['login']))
    .option(
      flag,
      'the server (default: TIDEGATE_URL, or a running tidegate dev)',
      baseUrl({ command, flag }),
    )
    .option('--account-name <name>', "of the account (default: the user's in git, or the folder's)")
    .option('--env-file <path>', 'a new file for the credentials (default: .env.<service>)')
    .addOption(
      new Option(
        '--stdout',
        'print the credentials instead, and everything else to standard error',
      ).conflicts(['envFile', 'json']),
    )
    .option('--metadata <key=value>', 'for the service; up to five times', metadata)
    .option('--no-open', 'do not open a browser')
    .option('--timeout <seconds>', 'give up when there are no credentials by then', seconds)
    .option(
      '--code-file <path>',
      'where the code of the consent page is written, instead of being typed',
    )
    .option('--json', 'print a JSON line for each event', false)
    .addHelpText('after', help)
    .action(async (service: string, action: 'login' | undefined, flags: SignupFlags) => {
      refuseOthers(command, service === 'list' && !action ? 'list' : action)
      const { runSignup } = await import('./run.ts')
      return runSignup(service, action, flags)
    })
}

const optionsOf = {
  login: ['baseUrl', 'envFile', 'open', 'json'],
  list: ['baseUrl', 'json'],
}

function refuseOthers(command: Command, action: 'login' | 'list' | undefined): void {
  if (!action) return
  const ignored = command.options.find((option) => {
    const name = option.attributeName()
    return command.getOptionValueSource(name) === 'cli' && !optionsOf[action].includes(name)
  })
  if (ignored) command.error(`error: option '${ignored.flags}' is not one of ${action}`)
}
