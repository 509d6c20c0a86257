import { describe, expect, test } from 'vitest'
import { partCount, promises, selectFiles } from './ci-files.ts'
import { isLongFile, testFiles } from './test-projects.ts'

const day = (n: number) => new Date(n * 86_400_000)
const promisedFiles: string[] = Object.values(promises)

describe('the promises', () => {
  test('each has a long file that exists, and no two share one', () => {
    const files = testFiles()
    expect(promisedFiles.filter((file) => !files.includes(file) || !isLongFile(file))).toEqual([])
    expect(new Set(promisedFiles).size).toBe(promisedFiles.length)
  })

  test('are about thirty, which fit into half an hour', () => {
    expect(promisedFiles.length).toBeGreaterThanOrEqual(25)
    expect(promisedFiles.length).toBeLessThanOrEqual(35)
  })
})

describe('the selection', () => {
  const files = testFiles()

  test('has every file that is not long and every promise, each day', () => {
    for (let n = 20_000; n < 20_000 + partCount; n++) {
      const { files: selected } = selectFiles({ files, time: day(n), touched: [] })
      expect(selected).toEqual(expect.arrayContaining(files.filter((file) => !isLongFile(file))))
      expect(selected).toEqual(expect.arrayContaining(promisedFiles))
      expect(new Set(selected).size).toBe(selected.length)
    }
  })

  test('covers every file in any seven days, in parts of equal size', () => {
    const start = 20_000 + Math.floor(Math.random() * 1000)
    console.log(`from day ${start}`)
    const days = Array.from({ length: 7 }, (_, n) =>
      selectFiles({ files, time: day(start + n), touched: [] }),
    )
    expect([...new Set(days.flatMap((selection) => selection.files))].sort()).toEqual(files)
    const sizes = days.map(({ inPart }) => inPart.length)
    expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
    expect(new Set(days.flatMap(({ inPart }) => inPart)).size).toBe(
      sizes.reduce((sum, size) => sum + size),
    )
  })

  test('follows the UTC day, and nothing else of the time', () => {
    const at = (time: string) => selectFiles({ files, time: new Date(time), touched: [] })
    expect(at('2026-11-28T23:59:59.999Z')).toEqual(at('2026-11-28T00:00:00Z'))
    expect(at('2026-11-29T00:00:00Z').inPart).not.toEqual(at('2026-11-28T00:00:00Z').inPart)
    expect(at('2026-11-29T00:00:00Z').part).toBe((at('2026-11-28T00:00:00Z').part + 1) % partCount)
  })

  test('has long files that were touched once, and ignores other paths', () => {
    const all = [
      'test/a.test.ts',
      'test/faults/b.test.ts',
      'test/c.long.test.ts',
      'test/d.long.test.ts',
    ]
    const touched = [...all, 'test/deleted.long.test.ts', 'services/cli/main.ts']
    const {
      files: selected,
      inPart,
      touched: more,
    } = selectFiles({ files: all, time: day(0), touched })
    expect(inPart).toEqual(['test/c.long.test.ts'])
    expect(more).toEqual(['test/d.long.test.ts', 'test/faults/b.test.ts'])
    expect(selected.toSorted()).toEqual(all.toSorted())
  })
})
