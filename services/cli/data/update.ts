import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { encodeAddresses } from '../../../infra/ip/data/file.ts'
import { readAddresses, shippedFile } from '../../../infra/ip/data/read.ts'
import { type DataSource, dataSources, type SourceGroup } from '../../../infra/ip/data/sources.ts'
import { applySources, type ReadSource } from '../../../infra/ip/data/update.ts'
import { errorMessage } from '../../../infra/thrown.ts'

export interface UpdateOptions {
  /** Of the operator. */
  file: string
  /** A folder with files of sources; without it they are fetched. */
  from?: string | undefined
  groups: readonly SourceGroup[]
  isTrusted: boolean
  now: Date
  sources?: readonly DataSource[]
  /** What the first update begins with. */
  shipped?: string
}

export interface Updated {
  taken: string[]
  failed: { title: string; reason: string }[]
}

/** Writes the file anew from the sources that could be read and are like the last file. Of the others its data stay. */
export async function updateAddresses(options: UpdateOptions): Promise<Updated> {
  const {
    file,
    from,
    groups,
    isTrusted,
    now,
    sources = dataSources,
    shipped = shippedFile,
  } = options
  const last = await readAddresses(existsSync(file) ? file : shipped)
  const failed: Updated['failed'] = []
  const read: ReadSource[] = []
  for (const source of sources.filter(({ group }) => groups.includes(group))) {
    try {
      const found =
        from === undefined
          ? { bytes: await fetchSource(source, now), at: now }
          : await fileOf(source, from)
      if (found)
        read.push({
          source,
          ranges: source.read(found.bytes),
          date: found.at.toISOString().slice(0, 10),
        })
    } catch (error) {
      failed.push({ title: source.title, reason: errorMessage(error) })
    }
  }
  const { data, refused } = applySources(last, read, isTrusted)
  const taken = read
    .map(({ source }) => source.title)
    .filter((title) => refused.every((one) => one.title !== title))
  if (taken.length > 0) await replaceFile(file, encodeAddresses(data))
  return { taken, failed: [...failed, ...refused] }
}

// Readers have the whole old file or the whole new one.
async function replaceFile(file: string, bytes: Buffer): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true })
  const written = `${file}.${process.pid}`
  const handle = await open(written, 'w', 0o644)
  try {
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(written, file)
}

interface FoundFile {
  bytes: Buffer
  /** When it was written. */
  at: Date
}

/** undefined where the folder has none, so that a folder may have some of the sources only. */
async function fileOf(source: DataSource, folder: string): Promise<FoundFile | undefined> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(source.file)).sort()
  const newest = names.at(-1)
  if (newest === undefined) return undefined
  const file = path.join(folder, newest)
  return { bytes: await readFile(file), at: (await stat(file)).mtime }
}

const timeoutMs = 120_000
const maxBytes = 100_000_000

async function fetchSource({ url, file }: DataSource, now: Date): Promise<Buffer> {
  if (!url) return fetchByPip(file)
  const response = await fetch(url(now), { signal: AbortSignal.timeout(timeoutMs) })
  if (!response.ok || !response.body)
    throw new Error(`${new URL(url(now)).host} answers ${response.status}`)
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body) {
    size += chunk.length
    if (size > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const run = promisify(execFile)

async function fetchByPip(name: string): Promise<Buffer> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-data-'))
  try {
    const args = ['download', '--quiet', '--no-deps', '--dest', folder, name]
    await run('pip', args, { timeout: timeoutMs }).catch((cause) => {
      throw new Error('pip, by which it is fetched, does not get it', { cause })
    })
    const [wheel = ''] = await readdir(folder)
    return await readFile(path.join(folder, wheel))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
