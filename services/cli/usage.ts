import type { Command } from 'commander'

/** Returns true if --json is among the arguments, even if others are invalid. Works before they are parsed. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end < 0 ? undefined : end).includes('--json')
}

/**
 * Configures how the program reports invalid arguments: as text on standard error or, for JSON, by throwing a
 * CommanderError. Keys and signing secrets are redacted. Call it before adding commands, which copy the configuration.
 */
export function configureUsageErrors(program: Command, { json }: { json: boolean }): Command {
  if (json) return program.exitOverride().configureOutput({ writeErr: () => {} })
  return program
    .showHelpAfterError('Add --help for usage.')
    .configureOutput({ outputError: (text, write) => write(redactKeys(text)) })
}

/** Replaces API keys and signing secrets in a text. */
export function redactKeys(text: string): string {
  return text.replace(/\b([ps]k_(?:live|test)_|whsec_)[\w+/=]+/gi, '$1...')
}
