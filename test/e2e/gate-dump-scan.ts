import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { createDataKey, type DataKey, dataKeyBytes, open } from '../../infra/crypto/sealing.ts'
import { bytesOfEvent } from '../support/dump.ts'
import type { Place } from '../support/secret-scan.ts'

/** Something in a dump that the server's keys open. Its name says where it is and what opened it. */
export type Opened = Place & { purpose: string }

const root = path.resolve(import.meta.dirname, '../..')

/** Every purpose that the code seals something for under a master key, so that none is forgotten here. */
async function sealingPurposes(): Promise<string[]> {
  const files = (
    await Promise.all(
      ['infra', 'services'].map((folder) =>
        readdir(path.join(root, folder), { recursive: true, withFileTypes: true }),
      ),
    )
  ).flat()
  const sources = files.filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  const texts = await Promise.all(
    sources.map(({ parentPath, name }) => readFile(path.join(parentPath, name), 'utf8')),
  )
  const found = texts.flatMap((text) =>
    [...text.matchAll(/\bpurpose(?:: | = )'([a-z-]+)'/g)].map(([, purpose]) => purpose ?? ''),
  )
  return [...new Set(found)]
}

/**
 * Opens whatever in a dump can be opened with the dump and the master keys. That is what was sealed under a master
 * key for any purpose, then what was sealed under the data keys found so. Looks at each value by itself, at the
 * binary fields of events, and at every hex and base64 text.
 */
export async function openDump(places: Place[], keyring: Keyring): Promise<Opened[]> {
  const blobs = uniqueBlobs(places)
  const contexts = contextsIn(places)
  const purposes = await sealingPurposes()
  const boxes = blobs
    .filter(({ bytes }) => bytes.length > 32 && keyring.byId(bytes.toString('hex', 0, 4)))
    .flatMap(({ name, bytes }) =>
      purposes.flatMap((purpose) =>
        firstOf(contexts.all, (context) => open(bytes, { keyring, purpose, context })).map(
          (plaintext) => ({ name: `${name}, sealed for ${purpose}`, bytes: plaintext, purpose }),
        ),
      ),
    )
  const secrets = boxes.filter(({ bytes }) => bytes.length === dataKeyBytes)
  const keys = secrets.map(({ bytes }) => createDataKey(bytes))
  return [
    ...boxes,
    ...keys.flatMap((key) => openUnder(key, { blobs, contexts: contexts.sessions })),
  ]
}

function openUnder(
  key: DataKey,
  { blobs, contexts }: { blobs: Place[]; contexts: string[] },
): Opened[] {
  return blobs.flatMap(({ name, bytes }) =>
    firstOf(contexts, (context) => key.open(bytes, { context })).map((plaintext) => ({
      name: `${name}, sealed under a data key`,
      bytes: plaintext,
      purpose: 'data key',
    })),
  )
}

function firstOf(contexts: string[], attempt: (context: string) => Buffer | undefined): Buffer[] {
  for (const context of contexts) {
    const plaintext = attempt(context)
    if (plaintext) return [plaintext]
  }
  return []
}

/** Returns possible encryption contexts: ids, hashes of idempotency keys, and none. */
function contextsIn(places: Place[]): { all: string[]; sessions: string[] } {
  const text = places.map(({ bytes }) => bytes.toString('latin1')).join('\n')
  const matches = (pattern: RegExp) => [...new Set(text.match(pattern))]
  const sessions = matches(/gate_[0-9a-hjkmnp-tv-z]{26}/g)
  const ids = matches(/\b(?:we_[0-9a-f]{32}|(?:org|key|evt)_[0-9a-hjkmnp-tv-z]{26})/g)
  const hashes = places
    .filter(({ bytes }) => bytes.length === 32)
    .map(({ bytes }) => bytes.toString('hex'))
  return { all: ['', ...sessions, ...ids, ...new Set(hashes)], sessions }
}

const shortest = 28

function uniqueBlobs(places: Place[]): Place[] {
  const byValue = new Map<string, Place>()
  for (const { name, bytes } of places)
    for (const blob of [bytes, ...bytesOfEvent(bytes), ...encodedIn(bytes)])
      if (blob.length >= shortest) byValue.set(blob.toString('latin1'), { name, bytes: blob })
  return [...byValue.values()]
}

function encodedIn(bytes: Buffer): Buffer[] {
  const text = bytes.toString('latin1')
  const hex = text.match(/(?:[0-9a-f]{2}){28,}/gi) ?? []
  const base64 = text.match(/[\w+/-]{38,}/g) ?? []
  return [
    ...hex.map((run) => Buffer.from(run, 'hex')),
    ...base64.map((run) => Buffer.from(run, 'base64')),
  ]
}
