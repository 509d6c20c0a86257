import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { root } from './test-projects.ts'

const programs = /(?:^|[\s|(])(?:tidegate|psql|pg_dump|pg_restore|curl) /

export interface PrintedCommand {
  /** Script of a code block, or a single command of the text. */
  script: string
  isBlock: boolean
}

/**
 * Returns the commands of a page that name one of `programs` with arguments, in order: shell blocks, code spans, and
 * first cells of tables with the header `tidegate ...`, prefixed with that word.
 */
export function printedCommands(markdown: string): PrintedCommand[] {
  const commands: PrintedCommand[] = []
  let table = ''
  for (const [part, language, block] of markdown.matchAll(/```(\w*)\n([\s\S]*?)```|^.*$/gm)) {
    if (block !== undefined) {
      if (language === 'sh' && programs.test(` ${block}`))
        commands.push({ script: block, isBlock: true })
      continue
    }
    if (!part.startsWith('|')) table = ''
    else if (part.startsWith('| `tidegate ...` |')) table = 'tidegate '
    const spans = table ? (part.split(' | ')[0] ?? '') : part
    for (const [, span = ''] of spans.matchAll(/`([^`]+)`/g)) {
      const script = table && span !== 'tidegate ...' ? table + span : span
      if (programs.test(` ${script}`) && script !== 'tidegate ...')
        commands.push({ script, isBlock: false })
    }
  }
  return commands
}

/** Returns the text of a page below a heading, up to the next heading of the same level. */
export async function sectionOf(page: string, heading: string): Promise<string> {
  const text = await readFile(path.join(root, page), 'utf8')
  const found = new RegExp(`^(#+) ${heading}$`, 'm').exec(text)
  if (!found?.[1]) throw new Error(`${page} has no heading ${heading}`)
  const rest = text.slice(found.index + found[0].length)
  const end = new RegExp(`^#{1,${found[1].length}} `, 'm').exec(rest)
  return rest.slice(0, end?.index)
}

/**
 * Returns the arguments of the `tidegate` commands in the lists and shell blocks of a section. Tests of a procedure run
 * these, so that they fail if the docs differ.
 */
export async function documentedSteps(
  page: string,
  heading: string,
  values: Record<string, string> = {},
): Promise<string[][]> {
  const section = await sectionOf(page, heading)
  const steps = section.match(/```sh\n[\s\S]*?```|^(?:\d+\.|-) .*$/gm) ?? []
  const lines = printedCommands(steps.join('\n')).flatMap(({ script }) => script.split('\n'))
  return lines
    .map((line) => line.replace(/\s#.*$/, '').trim())
    .filter((line) => line.startsWith('tidegate '))
    .map((line) => line.split(/\s+/).slice(1))
    .map((words) => words.map((word) => values[word] ?? word))
}
