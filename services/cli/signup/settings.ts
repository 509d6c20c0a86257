import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { type Command, InvalidArgumentError } from 'commander'
import { characterCount } from '../../../infra/text.ts'
import { numericArgument } from '../arguments.ts'
import { readCredentials } from '../credentials.ts'

const run = promisify(execFile)

// Modes for which Vite, Next.js and others load .env.<mode> automatically.
const modes = /^(?:local|dev|development|test|ci|staging|preview|prod|production)$/

export function defaultEnvFile(serviceId: string): string {
  const file = `.env.${serviceId}`
  if (!modes.test(serviceId)) return file
  throw new Error(`Other programs load ${file} automatically: choose another file with --env-file.`)
}

/** Returns the server's URL without trailing slashes, from the flag, TIDEGATE_URL or a running `tidegate dev`. */
export async function serverUrl(flag: string | undefined): Promise<string> {
  const url = flag ?? (process.env.TIDEGATE_URL || (await readCredentials())?.base_url)
  if (!url) {
    throw new Error(
      'No server: set --base-url or TIDEGATE_URL, or start `tidegate dev` (DATA_DIR has no credentials.json).',
    )
  }
  if (!/^https?:\/\//i.test(url) || URL.parse(url) === null)
    throw new Error('TIDEGATE_URL must start with http:// or https://.')
  return url.replace(/\/+$/, '')
}

const maxNameLength = 100

export async function defaultAccountName(): Promise<string> {
  const { stdout } = await run('git', ['config', 'user.name']).catch(() => ({ stdout: '' }))
  const name =
    [stdout, path.basename(process.cwd()), 'agent'].map((text) => text.trim()).find(Boolean) ?? ''
  return characterCount(name) <= maxNameLength ? name : [...name].slice(0, maxNameLength).join('')
}

export function keyValue(
  text: string,
  previous: Record<string, string> = {},
): Record<string, string> {
  const separator = text.indexOf('=')
  if (separator < 1) throw new InvalidArgumentError('It must be key=value.')
  return { ...previous, [text.slice(0, separator)]: text.slice(separator + 1) }
}

/** Returns a parser of service ids. Its errors name the argument or option by `label`. */
export function serviceIdArgument({
  command,
  label,
}: {
  command: Command
  label: string
}): (text: string) => string {
  return (text) => {
    if (/^[a-z0-9][a-z0-9_-]{1,30}[a-z0-9]$/.test(text)) return text
    return command.error(
      `error: ${label}: '${text}' is not a service id. An id has 3 to 32 lowercase letters, digits, - and _, and starts and ` +
        'ends with a letter or digit, such as demo-service.',
    )
  }
}

export const secondsArgument = numericArgument(
  /^[1-9]\d{0,4}$/,
  'It must be a whole number of seconds from 1 to 99999.',
)
