import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = path.resolve(import.meta.dirname, '../..')
const pom = path.join(root, 'infra/local/kafka-pom.xml')
const oldestJava = 17

/** Whether a Kafka broker can be run from jars here: Java 17 or newer, and the jars there or Maven to get them. */
export async function canRunKafkaJars(): Promise<boolean> {
  const hasJars = (await exists(await jarsFolder())) || (await works('mvn', '-v'))
  return hasJars && (await javaVersion()) >= oldestJava
}

/** The folder with Kafka's jars, fetched by Maven on first use and kept until infra/local/kafka-pom.xml changes. */
export async function kafkaJars(): Promise<string> {
  const folder = await jarsFolder()
  if (await exists(folder)) return folder
  await mkdir(path.dirname(folder), { recursive: true })
  // Fetched aside and renamed: a run that is broken off, or another one at the same time, leaves no half of it.
  const fresh = await mkdtemp(`${folder}-`)
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${fresh}`]
  await run('mvn', ['-q', '-B', '-f', pom, ...goal], { maxBuffer: 16 * 1024 * 1024 })
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true }))
  return folder
}

async function jarsFolder(): Promise<string> {
  const digest = createHash('sha256')
    .update(await readFile(pom))
    .digest('hex')
    .slice(0, 12)
  return path.join(root, '.cache/kafka-lib', digest)
}

const exists = (folder: string): Promise<boolean> =>
  stat(folder).then(
    () => true,
    () => false,
  )

const works = (file: string, flag: string): Promise<boolean> =>
  run(file, [flag]).then(
    () => true,
    () => false,
  )

/** Major version, 0 when there is none. `java -version` prints to standard error. */
async function javaVersion(): Promise<number> {
  const { stderr } = await run('java', ['-version']).catch(() => ({ stderr: '' }))
  return Number(/version "(\d+)/.exec(stderr)?.[1] ?? 0)
}
