import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type DebianMachine, debianPackages } from './packages.ts'

/** Packages that apt-get knows, and those that come with each. */
const known: Record<string, string[]> = { tree: [], browser: ['libbrowser', 'libold'] }

let folder: string
let installed: Set<string>
let asked: string[]
let updateFailure: string | undefined
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-packages-'))
  installed = new Set(['bash', 'libold'])
  asked = []
  updateFailure = undefined
})
afterEach(() => rm(folder, { recursive: true }))

async function run(command: string, args: string[]): Promise<string> {
  if (command === 'dpkg-query') return [...installed].map((name) => `${name} installed\n`).join('')
  const names = args.filter((name) => name in known || installed.has(name))
  if (command === 'apt-cache') return names.map((name) => `Package: ${name}\n`).join('')
  asked.push(
    `${command === 'dpkg' ? 'purge' : args.includes('update') ? 'update' : 'install'} ${names.join(' ')}`,
  )
  if (args.includes('update') && updateFailure)
    throw Object.assign(new Error(), { stderr: updateFailure })
  for (const name of names)
    if (command === 'dpkg') installed.delete(name)
    else for (const one of [name, ...(known[name] ?? [])]) installed.add(one)
  return ''
}

const policy = () => path.join(folder, 'policy-rc.d')
const packages = (change: Partial<DebianMachine> = {}) =>
  debianPackages({
    folder,
    hasAptGet: true,
    uid: 0,
    policy: policy(),
    run,
    say: () => {},
    ...change,
  })

test('one call brings what is missing, and a purge takes what came, nothing that was there before', async () => {
  const before = new Set(installed)
  await packages().install(['browser', 'bash', 'of-another-release'], 'pages')
  await packages().install(['tree'], 'trees')
  expect(asked).toEqual(['update ', 'install browser', 'update ', 'install tree'])
  await packages().purge()
  expect(asked.at(-1)).toBe('purge browser libbrowser tree')
  expect(installed).toEqual(before)
  asked = []
  await packages().purge()
  await packages().install(['bash'], 'shells')
  expect(asked).toEqual([])
})

test('the reason for having nothing is what apt-get says, or which package it does not know', async () => {
  const installing = () => packages().install(['of-another-release'], 'trees')
  await expect(installing()).rejects.toThrow('apt-get knows no of-another-release')
  updateFailure = 'E: The repository has no Release file.\n'
  await expect(installing()).rejects.toThrow('E: The repository has no Release file.')
})

test('servers that packages bring are not started', async () => {
  const seen: string[] = []
  const look: DebianMachine['run'] = async (command, args) => {
    if (args.includes('install')) seen.push(await readFile(policy(), 'utf8'))
    return run(command, args)
  }
  await packages({ run: look }).install(['tree'], 'servers')
  expect(seen).toEqual([expect.stringContaining('exit 101')])
  await expect(readFile(policy())).rejects.toThrow('ENOENT')
})

test('what something else needs stays', async () => {
  await packages().install(['browser'], 'pages')
  const said: string[] = []
  const refuse: DebianMachine['run'] = (command, args) =>
    command === 'dpkg' ? Promise.reject(new Error('other depends on it')) : run(command, args)
  await packages({ run: refuse, say: (line) => said.push(line) }).purge()
  expect(said.at(-1)).toBe('It stays: other depends on it')
  expect(installed).toContain('browser')
})

test.each<[Partial<DebianMachine>, string | undefined]>([
  [{ uid: 1000 }, 'only root may install packages'],
  [{ hasAptGet: false }, 'there is no apt-get'],
  [{}, undefined],
])('%j: installing is refused with %j', (change, reason) => {
  expect(packages(change).refusal()).toBe(reason)
})
