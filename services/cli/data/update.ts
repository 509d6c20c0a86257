import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { encodeAddresses } from '../../../infra/ip/data/file.ts'
import { bundledFile, readAddresses } from '../../../infra/ip/data/read.ts'
import { type DataSource, dataSources, type SourceGroup } from '../../../infra/ip/data/sources.ts'
import { applySources, type ReadSource } from '../../../infra/ip/data/update.ts'
import { errorMessage } from '../../../infra/thrown.ts'

export interface UpdateOptions {
  /** Data file to update. */
  file: string
  /** Folder with source files. Default: download the sources. */
  from?: string | undefined
  groups: readonly SourceGroup[]
  /** Accepts sources that differ too much from the current file. */
  isTrusted: boolean
  now: Date
  sources?: readonly DataSource[]
  /** Data file to start from while `file` does not exist. Default: the bundled one. */
  initialFile?: string
}

export interface UpdateResult {
  taken: string[]
  failed: { title: string; reason: string }[]
}

/**
 * Rewrites the data file with the sources that can be read and don't differ too much from its current data. Keeps the data
 * of all other sources, and lists the failed ones in the result.
 */
export async function updateAddresses(options: UpdateOptions): Promise<UpdateResult> {
  const {
    file,
    from,
    groups,
    isTrusted,
    now,
    sources = dataSources,
    initialFile = bundledFile,
  } = options
  const current = await readAddresses(existsSync(file) ? file : initialFile)
  const failed: UpdateResult['failed'] = []
  const read: ReadSource[] = []
  for (const source of sources.filter(({ group }) => groups.includes(group))) {
    try {
      const sourceFile =
        from === undefined
          ? { bytes: await fetchSource(source, now), modifiedAt: now }
          : await findSourceFile(source, from)
      if (sourceFile)
        read.push({
          source,
          ranges: source.read(sourceFile.bytes),
          date: sourceFile.modifiedAt.toISOString().slice(0, 10),
        })
    } catch (error) {
      failed.push({ title: source.title, reason: errorMessage(error) })
    }
  }
  const { data, refused } = applySources(current, read, isTrusted)
  const taken = read
    .map(({ source }) => source.title)
    .filter((title) => refused.every((source) => source.title !== title))
  if (taken.length > 0) await replaceFile(file, encodeAddresses(data))
  return { taken, failed: [...failed, ...refused] }
}

// Replaces the file atomically, because servers read it at any time.
async function replaceFile(file: string, bytes: Buffer): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true })
  const temporaryFile = `${file}.${process.pid}`
  const handle = await open(temporaryFile, 'w', 0o644)
  try {
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(temporaryFile, file)
}

interface SourceFile {
  bytes: Buffer
  modifiedAt: Date
}

/** Returns the source's newest file in the folder; undefined if there is none. */
async function findSourceFile(source: DataSource, folder: string): Promise<SourceFile | undefined> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(source.file)).sort()
  const newest = names.at(-1)
  if (newest === undefined) return undefined
  const file = path.join(folder, newest)
  return { bytes: await readFile(file), modifiedAt: (await stat(file)).mtime }
}

const timeoutMs = 120_000
const maxBytes = 100_000_000

async function fetchSource({ url, file }: DataSource, now: Date): Promise<Buffer> {
  if (!url) return downloadWithPip(file)
  const response = await fetch(url(now), { signal: AbortSignal.timeout(timeoutMs) })
  if (!response.ok || !response.body)
    throw new Error(`${new URL(url(now)).host} returned ${response.status}`)
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body) {
    size += chunk.length
    if (size > maxBytes) throw new Error(`the download is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const run = promisify(execFile)

async function downloadWithPip(name: string): Promise<Buffer> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-data-'))
  try {
    const args = ['download', '--quiet', '--no-deps', '--dest', folder, name]
    await run('pip', args, { timeout: timeoutMs }).catch((cause) => {
      throw new Error(`pip could not download ${name}`, { cause })
    })
    const [wheel = ''] = await readdir(folder)
    return await readFile(path.join(folder, wheel))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
