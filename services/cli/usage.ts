import type { Command } from 'commander'

/** Whether --json is among the arguments, which may be wrong otherwise and are therefore not parsed yet. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? undefined : end).includes('--json')
}

/**
 * Makes the program report wrong arguments: in a sentence on standard error, or by throwing a CommanderError
 * when JSON is requested. A key or signing secret among the arguments is not repeated. Call it before commands are added,
 * which take it over.
 */
export function tellUsage(program: Command, { json }: { json: boolean }): Command {
  if (json) return program.exitOverride().configureOutput({ writeErr: () => {} })
  return program
    .showHelpAfterError('Add --help to see what it takes.')
    .configureOutput({ outputError: (text, write) => write(withoutKeys(text)) })
}

export function withoutKeys(text: string): string {
  return text.replace(/\b([ps]k_(?:live|test)_|whsec_)[\w+/=]+/gi, '$1...')
}
