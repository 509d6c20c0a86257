import { readFileSync } from 'node:fs'
import path from 'node:path'
import { sourceFiles } from './imports.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** Names that several files define with one meaning, and what it is. */
export const oneMeaning = new Map([['start', "the browser SDK's, of /t.js and of its npm package"]])

/** Exported names that two or more files define, with those files; a re-export is no definition. */
export function sharedNames(files: Map<string, string> = sources()): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const [file, text] of files) {
    for (const name of new Set(exportedNames(text)))
      found.set(name, [...(found.get(name) ?? []), file])
  }
  return new Map([...found].filter(([, definedIn]) => definedIn.length > 1).sort())
}

// The package @tidegate/server names things as its users expect, and nothing here imports it.
const isOfServer = (file: string) => !file.startsWith('services/web/server-sdk/')

function sources(): Map<string, string> {
  const files = sourceFiles().filter(isOfServer)
  return new Map(files.map((file) => [file, readFileSync(path.join(root, file), 'utf8')]))
}

const declaration =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm
const list = /^export (?:type )?\{([^}]*)\}(?! from)/gm

function exportedNames(text: string): string[] {
  const declared = [...text.matchAll(declaration)].map(([, name]) => String(name))
  const listed = [...text.matchAll(list)].flatMap(([, names]) => String(names).split(','))
  return declared.concat(listed.map(publicName).filter((name) => name !== ''))
}

/** `type a as b` is b. */
function publicName(item: string): string {
  return item.trim().split(/\s+/).at(-1) ?? ''
}

if (import.meta.main) {
  const shared = [...sharedNames()]
  for (const [name, files] of shared) {
    console.log(`${oneMeaning.has(name) ? ' ' : '!'} ${name.padEnd(28)} ${files.join(' ')}`)
  }
  const open = shared.filter(([name]) => !oneMeaning.has(name))
  console.log(
    `\n${shared.length} names in several files, ${open.length} of them with several meanings`,
  )
}
