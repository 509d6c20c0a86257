import { describe, expect, it } from 'vitest'
import {
  findOperator,
  findOperatorByName,
  nearestTags,
  operatorCatalogue,
  operatorCategory,
  operatorsOfNetwork,
} from '../../../infra/ip/operators.ts'

const { operators } = operatorCatalogue
const namesOf = ({ tag, aliases }: (typeof operators)[number]) => [tag, ...aliases]
const sorted = (names: string[]) => [...names].sort()

describe('the operator catalogue', () => {
  it('has a source for each operator', () => {
    expect(operatorCatalogue.sources.length).toBeGreaterThan(0)
    expect(operators.filter(({ source }) => source.length < 10)).toEqual([])
  })

  it('has more than 44 operators, sorted, and every category', () => {
    expect(operators.length).toBeGreaterThan(44)
    const tags = operators.map(({ tag }) => tag)
    expect(tags).toEqual(sorted(tags))
    expect(new Set(operators.map(({ category }) => category))).toEqual(
      new Set(operatorCategory.options),
    )
  })

  it('has each tag and alias once, in upper case, aliases and networks sorted', () => {
    const names = operators.flatMap(namesOf)
    expect(new Set(names).size).toBe(names.length)
    expect(names.filter((name) => !/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/.test(name))).toEqual([])
    for (const { aliases, asns } of operators) {
      expect(aliases).toEqual(sorted(aliases))
      expect(asns).toEqual([...asns].sort((a, b) => a - b))
    }
  })

  it('has no two operators that a database could give the same name', () => {
    for (const operator of operators)
      for (const name of [operator.name, ...namesOf(operator)])
        expect(findOperatorByName(name)).toBe(operator)
  })

  it.each([
    ['BYTEFUL_ISP', 'BYTEFUL'],
    ['PINGPROXIES', 'BYTEFUL'],
    ['OPENAI_GPTBOT', 'OPENAI'],
    ['NORDVPN', 'NORDVPN'],
    ['APPLE_PRIVATE_RELAY', 'ICLOUD'],
  ])('finds %s as %s', (name, tag) => {
    expect(findOperator(name)?.tag).toBe(tag)
  })

  it.each(['', 'BYTEFUL_', 'OPENAI_', 'byteful', ' NORDVPN', 'NORD', 'toString'])(
    'finds no operator %j',
    (name) => expect(findOperator(name)).toBeUndefined(),
  )

  it('finds an operator by the spelling of a database, but not by a part of its name', () => {
    expect(findOperatorByName('NordVPN')?.tag).toBe('NORDVPN')
    expect(findOperatorByName('nord vpn')?.tag).toBe('NORDVPN')
    expect(findOperatorByName('Nord')).toBeUndefined()
    expect(findOperatorByName('')).toBeUndefined()
  })

  it('finds the operators of a network', () => {
    expect(operatorsOfNetwork('36183').map(({ tag }) => tag)).toEqual(['ICLOUD'])
    expect(operatorsOfNetwork('714').map(({ tag }) => tag)).toEqual(['APPLEBOT', 'ICLOUD'])
    expect(operatorsOfNetwork('64512')).toEqual([])
  })
})

describe('the nearest tags', () => {
  it.each([
    ['NORDVP', 'NORDVPN'],
    ['nordvpn', 'NORDVPN'],
    ['BYTEFUL_MOBILE', 'BYTEFUL'],
    ['PINGPROXY', 'BYTEFUL'],
    ['OPENAI_GPTBOTS', 'OPENAI'],
  ])('of %s start with %s', (text, tag) => {
    expect(nearestTags(text, 10)[0]).toBe(tag)
  })

  it('are ten different canonical tags, in the same order each time', () => {
    const nearest = nearestTags('ZZZZ', 10)
    expect(new Set(nearest).size).toBe(10)
    expect(nearest.every((tag) => findOperator(tag)?.tag === tag)).toBe(true)
    expect(nearestTags('ZZZZ', 10)).toEqual(nearest)
  })

  it('of a very long text depend only on its start', () => {
    expect(nearestTags(`NORDVPN${'X'.repeat(200_000)}`, 10)).toEqual(
      nearestTags(`NORDVPN${'X'.repeat(57)}`, 10),
    )
  })
})
