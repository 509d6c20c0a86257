import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Metafile } from 'esbuild'
import { root } from './program.ts'

/** Returns the license texts of all packages in a bundle. The licenses require that a copy includes them. */
export async function licenseTexts({ inputs }: Metafile): Promise<string> {
  const folders = Object.keys(inputs).map(
    (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? '',
  )
  const packages = [...new Set(folders)].filter((folder) => folder !== '').sort()
  const texts = await Promise.all(packages.map((folder) => licenseText(path.join(root, folder))))
  return `${texts.join('\n\n')}\n`
}

async function licenseText(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(
    await readFile(path.join(folder, 'package.json'), 'utf8'),
  )
  const names = (await readdir(folder))
    .filter((file) => /^(?:licen[cs]e|notice)/i.test(file))
    .sort()
  const texts = await Promise.all(names.map((file) => readFile(path.join(folder, file), 'utf8')))
  return [`## ${name} ${version} (${license})`, ...texts.map((text) => text.trim())].join('\n\n')
}
