import type { Command } from 'commander'
import { errorJson } from './operator/failure.ts'

/** Whether the arguments ask for JSON. Known before they are parsed, since they may be what is wrong. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? undefined : end).includes('--json')
}

/**
 * How the program tells of arguments that it refuses: with help on standard error, or by throwing a CommanderError
 * when JSON is wanted. A key or signing secret among the arguments is not repeated. Call it before commands are added,
 * which take it over.
 */
export function tellUsage(program: Command, { json }: { json: boolean }): Command {
  if (json) return program.exitOverride().configureOutput({ writeErr: () => {} })
  return program
    .showHelpAfterError()
    .configureOutput({ outputError: (text, write) => write(withoutKeys(text)) })
}

interface Telling {
  json: boolean
  /** As a line `{ "event": "failed", "error": ... }`, where the command prints events. */
  events: boolean
}

/** Ends the process with code 1 and says why: a message on standard error, or `{ "error": ... }` on standard output. */
export function tellFailure(error: unknown, { json, events }: Telling): void {
  if (isHelp(error)) return
  process.exitCode = 1
  if (json && events) console.log(withoutKeys(JSON.stringify({ event: 'failed', error: errorJson(error) })))
  else if (json) console.log(withoutKeys(JSON.stringify({ error: errorJson(error) }, null, 2)))
  else console.error(error instanceof Error ? error.message : error)
}

/** Help or the version that was asked for: thrown too, once it is printed. */
function isHelp(error: unknown): boolean {
  return error instanceof Error && 'exitCode' in error && error.exitCode === 0
}

function withoutKeys(text: string): string {
  return text.replace(/\b([ps]k_(?:live|test)_|whsec_)[\w+/=]+/gi, '$1...')
}
