import { type Read, reach, readFile } from '../test-projects.ts'

/** Returns the needs in a module, from the literals in its calls. */
const namesIn = (text: string): string[] =>
  [...text.matchAll(/\bneeds\(((?:\s*'[\w-]+',?)+)\s*\)/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/'([\w-]+)'/g)].map(([, name = '']) => name),
  )

/** Returns the files by need, from their source and that of imported modules of test/. */
export function filesByNeed(files: string[], read: Read = readFile): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const file of files) {
    const modules = [file, ...reach(file, read)].filter((module) => /^test\/.*\.ts$/.test(module))
    for (const name of new Set(modules.flatMap((module) => namesIn(read(module)))))
      found.set(name, [...(found.get(name) ?? []), file])
  }
  return found
}
