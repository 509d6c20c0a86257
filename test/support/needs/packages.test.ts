import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Lock } from './lock.ts'
import { type DebianMachine, debianPackages } from './packages.ts'

/** A Debian: what is installed, what its lists know, and what has been asked of it. */
interface Machine {
  installed: Set<string>
  known: Record<string, string[]>
  asked: string[]
  said: string[]
  /** Commands that fail, with what they print. */
  failing: Record<string, string[]>
  isUsed: boolean
}

let folder: string
let machine: Machine
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tidegate-packages-'))
  machine = {
    installed: new Set(['bash', 'libold']),
    known: { tree: [], browser: ['libbrowser', 'libold'], server: ['libserver'] },
    asked: [],
    said: [],
    failing: {},
    isUsed: false,
  }
})
afterEach(() => rm(folder, { recursive: true }))

async function run(command: string, args: string[]): Promise<string> {
  const words = args.filter((word) => !word.startsWith('-') && !word.startsWith('DPkg::'))
  const [verb = '', ...names] = words
  if (command === 'dpkg-query')
    return [...machine.installed].map((name) => `${name} installed\n`).join('')
  if (command === 'apt-cache')
    return names.flatMap((name) => (name in machine.known ? `Package: ${name}\n` : [])).join('\n')
  const isSimulated = args.includes('--simulate')
  if (!isSimulated) machine.asked.push(words.join(' '))
  const failure = machine.failing[verb]?.shift()
  if (failure) throw Object.assign(new Error('Command failed'), { stderr: failure })
  if (verb === 'install')
    for (const name of names)
      for (const one of [name, ...(machine.known[name] ?? [])]) machine.installed.add(one)
  if (verb !== 'purge') return ''
  const needing = Object.keys(machine.known).filter(
    (name) =>
      machine.installed.has(name) && machine.known[name]?.some((one) => names.includes(one)),
  )
  const goes = [...new Set([...names, ...needing])]
  if (!isSimulated) for (const name of goes) machine.installed.delete(name)
  return goes.map((name) => `Purg ${name} [1.0]`).join('\n')
}

function packages(change: Partial<DebianMachine> = {}) {
  const held: Lock = { release: async () => {} }
  return debianPackages({
    folder,
    hasAptGet: true,
    uid: 0,
    policy: path.join(folder, 'policy-rc.d'),
    run,
    lock: async (_file, options = {}) =>
      machine.isUsed && options.wait === false ? undefined : held,
    say: (line) => machine.said.push(line),
    ...change,
  })
}

const marked = async () =>
  (await readFile(path.join(folder, 'installed'), 'utf8')).trim().split('\n').sort()

test('one call brings all packages, and it is said which and why', async () => {
  await packages().install(['browser', 'tree'], 'pages in a browser')
  expect(machine.asked).toEqual(['update', 'install browser tree'])
  expect(machine.said).toEqual([
    expect.stringMatching(/pages in a browser: apt-get install browser tree$/),
  ])
})

test('what is installed already is not asked for', async () => {
  await packages().install(['bash'], 'shells')
  expect(machine.asked).toEqual([])
})

test('what this release of Debian does not have keeps nothing else away', async () => {
  await packages().install(['tree', 'of-another-release'], 'trees')
  expect(machine.installed).toContain('tree')
  await expect(packages().install(['of-another-release'], 'x')).rejects.toThrow(
    'apt-get knows no of-another-release',
  )
})

test('who else fetches lists of packages is waited for', async () => {
  machine.failing.update = [
    'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)\n',
  ]
  await packages().install(['tree'], 'trees')
  expect(machine.asked).toEqual(['update', 'update', 'install tree'])
})

test('without a network the reason is what apt-get says', async () => {
  machine.failing.update = ['E: The repository has no Release file.\n']
  machine.known = {}
  await expect(packages().install(['tree'], 'trees')).rejects.toMatchObject({
    message: expect.stringContaining('E: The repository has no Release file.'),
  })
})

test('servers that packages bring are not started', async () => {
  const seen: string[] = []
  await packages({
    run: async (command, args) => {
      if (args.includes('install'))
        seen.push(await readFile(path.join(folder, 'policy-rc.d'), 'utf8'))
      return run(command, args)
    },
  }).install(['server'], 'servers')
  expect(seen).toEqual([expect.stringContaining('exit 101')])
  await expect(readFile(path.join(folder, 'policy-rc.d'))).rejects.toThrow('ENOENT')
})

test('a purge takes what tests installed with all that came with it, and nothing that was there before', async () => {
  const before = new Set(machine.installed)
  await packages().install(['browser'], 'pages')
  await packages().install(['tree'], 'trees')
  expect(await marked()).toEqual(['browser', 'libbrowser', 'tree'])
  await packages().purge()
  expect(machine.installed).toEqual(before)
  expect(machine.said.at(-1)).toMatch(/purges what tests installed/)
  machine.asked = []
  await packages().purge()
  expect(machine.asked).toEqual([])
})

test('an installation that was broken off is purged as well', async () => {
  const cut = new Error('killed')
  const killed: DebianMachine['run'] = async (command, args) => {
    await run(command, args)
    // From here on nothing of that process happens.
    if (args.includes('install')) throw cut
    if (command === 'dpkg-query' && machine.installed.has('tree')) throw cut
    return run(command, args)
  }
  await expect(packages({ run: killed }).install(['tree'], 'trees')).rejects.toBe(cut)
  await packages().purge()
  expect(machine.installed).not.toContain('tree')
})

test('nothing is purged on which something depends that came otherwise', async () => {
  await packages().install(['browser'], 'pages')
  machine.known.other = ['libbrowser']
  machine.installed.add('other')
  await packages().purge()
  expect(machine.installed).toContain('browser')
  expect(machine.said.at(-1)).toMatch(/purges nothing: other came otherwise/)
})

test('nothing is purged while another run uses it', async () => {
  await packages().install(['browser'], 'pages')
  machine.isUsed = true
  await packages().purge()
  expect(machine.installed).toContain('browser')
  expect(machine.said.at(-1)).toMatch(/another test run uses/)
})

test.each<[Partial<DebianMachine>, string | undefined]>([
  [{ uid: 1000 }, 'only root may install packages'],
  [{ hasAptGet: false }, 'there is no apt-get'],
  [{}, undefined],
])('%j: installing is refused with %j', (change, reason) => {
  expect(packages(change).refusal()).toBe(reason)
})
