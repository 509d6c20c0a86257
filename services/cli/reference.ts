// Writes docs/reference/cli.md: node services/cli/reference.ts
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Command, type Option } from 'commander'
import { commands } from './commands.ts'

export const cliReferenceFile = path.join(import.meta.dirname, '../../docs/reference/cli.md')

const intro = `# Commands

Every command of \`tidegate\` with its options, as \`tidegate <command> --help\` prints them. In a clone, type \`npm run -s tidegate --\` instead of \`tidegate\`. Commands that read the database or the log take the same [settings](configuration.md) as the server. With \`--json\`, results and errors are JSON, and the exit code is 1 after an error.
`

/** Returns the page of all commands as Markdown. */
export async function cliReference(): Promise<string> {
  const groups = Map.groupBy(Object.entries(commands), ([, { group }]) => group)
  const parts = [...groups].map(async ([group, named]) => {
    const sections = await Promise.all(
      named.map(async ([name, { summary, example, load }]) => {
        const command = new Command(name).description(summary)
        ;(await load())(command)
        return section(command, { parents: ['tidegate'], depth: 3, example })
      }),
    )
    return `## ${group}\n\n${sections.join('\n\n')}\n`
  })
  return `${[intro, ...(await Promise.all(parts))].join('\n').trimEnd()}\n`
}

interface SectionOptions {
  parents: string[]
  depth: number
  example?: string
}

function section(command: Command, { parents, depth, example }: SectionOptions): string {
  const names = [...parents, command.name()]
  const heading = `${'#'.repeat(depth)} ${names.slice(1).join(' ')}`
  const usage = [...names, command.usage().replace('[options] [command]', '<command>')].join(' ')
  const code = example === undefined ? usage : `${usage}\ntidegate ${example}   # example`
  return [
    heading,
    `${command.description()}.`.replace('..', '.'),
    `\`\`\`text\n${code}\n\`\`\``,
    ...(command.options.length > 0 ? [optionTable(command.options)] : []),
    ...command.commands.map((child) => section(child, { parents: names, depth: depth + 1 })),
  ].join('\n\n')
}

function optionTable(options: readonly Option[]): string {
  const rows = options
    .filter(({ hidden }) => !hidden)
    .map(
      (option) => `| \`${option.flags}\` | ${cell(option.description)} | ${defaultText(option)} |`,
    )
  return `| option | description | default |\n|-|-|-|\n${rows.join('\n')}`
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;')

function defaultText({ defaultValue, defaultValueDescription }: Option): string {
  if (defaultValueDescription !== undefined) return defaultValueDescription
  return defaultValue === undefined || defaultValue === false ? '' : `\`${String(defaultValue)}\``
}

if (import.meta.main) await writeFile(cliReferenceFile, await cliReference())
