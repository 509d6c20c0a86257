import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Secret } from './secret-scan.ts'

export interface KnownSecrets {
  all(): Secret[]
  /** Adds a text, and its decoded bytes if it is base64, base64url or hex. */
  add(name: string, text: string, mayBeIn?: Secret['mayBeIn']): void
  /** Adds a secret key and its SHA-256, which opens sealed tokens. */
  addKey(name: string, key: string): void
}

/** Collects secrets that must not be found. A repeated value keeps its first name. */
export function createKnownSecrets(): KnownSecrets {
  const byValue = new Map<string, Secret>()

  function put(secret: Secret): void {
    const value = Buffer.from(secret.value).toString('hex')
    if (!byValue.has(value)) byValue.set(value, secret)
  }

  function add(name: string, text: string, mayBeIn?: Secret['mayBeIn']): void {
    const rule = mayBeIn ? { mayBeIn } : {}
    put({ name, value: text, ...rule })
    for (const encoding of ['hex', 'base64', 'base64url'] as const) {
      const value = Buffer.from(text, encoding)
      if (value.length >= 16 && value.toString(encoding) === text)
        put({ name: `${name}, decoded`, value, ...rule })
    }
  }

  return {
    all: () => [...byValue.values()],
    add,
    addKey(name, key) {
      put({ name, value: key })
      put({ name: `SHA-256 of ${name}`, value: createHash('sha256').update(key).digest() })
    },
  }
}

/** Files of an installation that contain secrets by design. Only their owner can read them. */
export const privateFiles = [
  'credentials.json',
  'master-keys',
  'database-url',
  path.join('postgres', 'tidegate-password'),
]

/** Adds the secrets of the installation itself. */
export async function addInstallation(secrets: KnownSecrets, dataDir: string): Promise<void> {
  const read = async (file: string) => (await readFile(path.join(dataDir, file), 'utf8')).trim()
  secrets.add('the master key', await read('master-keys'))
  secrets.add('the database password', await read(path.join('postgres', 'tidegate-password')))
  const { live, test } = JSON.parse(await read('credentials.json'))
  secrets.addKey('the live secret key', live.secret_key)
  secrets.addKey('the test secret key', test.secret_key)
}
