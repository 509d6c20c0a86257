import { readFile } from 'node:fs/promises'
import path from 'node:path'

export const docs = path.resolve(import.meta.dirname, '../../docs')

/** Returns the code block after `<!-- label -->` in a page of docs/. */
export async function codeBlock(name: string, label: string): Promise<string> {
  const page = await readFile(path.join(docs, name), 'utf8')
  const block = new RegExp(
    `<!-- ${label.replaceAll('.', '\\.')} -->\n\`\`\`\\w+\n([\\s\\S]*?)\`\`\``,
  ).exec(page)
  if (!block?.[1]) throw new Error(`docs/${name} has no block ${label}`)
  return block[1]
}
