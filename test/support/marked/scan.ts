import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Cluster } from '../cluster.ts'
import { dumpDatabase, dumpTopics, withoutPageHeaders } from '../dump.ts'
import { openedRecords } from '../people.ts'
import { createScanner, type Finding, type Place, type Secret } from '../secret-scan.ts'
import type { Marks } from './marks.ts'

/** Returns tables, topics with and without decrypted contents, and logs. */
export async function placesOf({
  settings,
  outputs,
}: Pick<Cluster, 'settings' | 'outputs'>): Promise<Place[]> {
  const {
    DATABASE_URL: url = '',
    KAFKA_BROKERS: brokers = '',
    KAFKA_TOPIC_PREFIX: prefix = '',
  } = settings
  return [
    ...(await dumpDatabase(url)),
    ...(brokers ? await dumpTopics({ brokers, prefix }) : []),
    ...(await openedRecords({ settings })),
    ...outputs().map((text, i) => ({
      name: `the output of process ${i}`,
      bytes: Buffer.from(text),
    })),
  ]
}

/** Yields the files of a folder, and WAL files also without page headers. */
export async function* filesOf(folder: string): AsyncGenerator<Place> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const file = path.join(entry.parentPath, entry.name)
    const place = { name: `file ${path.relative(folder, file)}`, bytes: await readFile(file) }
    yield place
    if (file.includes('/pg_wal/')) yield { ...place, bytes: withoutPageHeaders(place.bytes) }
  }
}

/** Returns the places that contain any mark of these people, plain or encoded. */
export async function findMarked(
  people: Pick<Marks, 'secrets'>[],
  places: Iterable<Place> | AsyncIterable<Place>,
): Promise<Finding[]> {
  const secrets = people.flatMap((marks) => marks.secrets())
  const scanner = createScanner([...secrets, ...secrets.flatMap(inUtf16)])
  const found: Finding[] = []
  for await (const place of places) found.push(...scanner.scan(place))
  return found
}

// Omits the last byte, which is 0.
const inUtf16 = ({ name, value }: Secret): Secret[] =>
  typeof value === 'string'
    ? [{ name: `${name} in UTF-16`, value: Buffer.from(value, 'utf16le').subarray(0, -1) }]
    : []

/** Returns members that are in no place. A scan that cannot find these proves nothing about others. */
export function unseenMembers(marks: Pick<Marks, 'members'>, places: Place[]): string[] {
  const members = marks.members()
  const scanner = createScanner(members)
  const seen = new Set(places.flatMap((place) => scanner.scan(place).map(({ secret }) => secret)))
  return members.map(({ name }) => name).filter((name) => !seen.has(name))
}
