import { expect, test } from 'vitest'
import { CannotBe } from './cannot-be.ts'
import type { Need } from './catalogue.ts'
import type { Packages } from './packages.ts'
import { provideAll } from './provide.ts'

const here: Need = { tests: 'what is here', isHere: () => true }

function world(changes: Partial<Packages> = {}) {
  const installed: string[] = []
  const calls: string[] = []
  const packages: Packages = {
    refusal: () => undefined,
    install: async (names, why) => {
      installed.push(...names)
      calls.push(`install ${names.join(' ')}: ${why}`)
    },
    purge: async () => void calls.push('purge'),
    ...changes,
  }
  const byPackage = (name: string): Need => ({
    tests: `what takes ${name}`,
    isHere: () => installed.includes(name),
    packages: [name],
  })
  const provide = (catalogue: Record<string, Need>, { isFresh = false } = {}) =>
    provideAll({
      catalogue,
      files: new Map(Object.keys(catalogue).map((name) => [name, [`test/${name}.test.ts`]])),
      packages,
      isFresh,
    })
  return { calls, byPackage, provide }
}

test('what is lacking comes by one call, and nothing else is installed', async () => {
  const { calls, byPackage, provide } = world()
  const { missing, met } = await provide({ one: byPackage('one'), here, two: byPackage('two') })
  expect(calls).toEqual(['install one two: what takes one; what takes two'])
  expect(missing).toEqual([])
  expect(met).toEqual(['one', 'here', 'two'])
})

test('FRESH purges first', async () => {
  const { calls, byPackage, provide } = world()
  await provide({ one: byPackage('one') }, { isFresh: true })
  expect(calls[0]).toBe('purge')
})

test('where nothing may be installed it is said of each what would help, and what is here is used', async () => {
  const { calls, byPackage, provide } = world({ refusal: () => 'only root may install packages' })
  const { missing, met } = await provide({ one: byPackage('one'), here })
  expect(calls).toEqual([])
  expect(met).toEqual(['here'])
  expect(missing).toEqual([
    {
      name: 'one',
      tests: 'what takes one',
      files: ['test/one.test.ts'],
      reason: 'only root may install packages',
      remedy: 'sudo apt-get install one',
      couldBe: true,
    },
  ])
})

test('what apt-get refuses is the reason', async () => {
  const stderr = 'W: a warning\nE: Unable to fetch some archives\n'
  const { byPackage, provide } = world({
    install: async () => {
      throw Object.assign(new Error('Command failed: apt-get'), { stderr })
    },
  })
  const { missing } = await provide({ one: byPackage('one') })
  expect(missing).toMatchObject([{ reason: 'E: Unable to fetch some archives', couldBe: true }])
})

test('what is made is ended, and what cannot be on this machine is told from what could', async () => {
  const { provide } = world()
  const ended: string[] = []
  const { missing, met, stop } = await provide({
    daemon: { tests: 'the image', make: async () => async () => void ended.push('daemon') },
    jars: { tests: 'Kafka', make: () => Promise.reject(new Error('the registry does not answer')) },
    history: {
      tests: 'an update',
      make: () => Promise.reject(new CannotBe('this clone is shallow')),
    },
  })
  expect(met).toEqual(['daemon'])
  expect(missing).toMatchObject([
    { name: 'jars', reason: 'the registry does not answer', couldBe: true },
    { name: 'history', reason: 'this clone is shallow', couldBe: false },
  ])
  await stop()
  expect(ended).toEqual(['daemon'])
})
