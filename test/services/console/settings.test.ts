import { readFileSync } from 'node:fs'
import path from 'node:path'
import { transform } from 'esbuild'
import { expect, test } from 'vitest'
import { snippetsOf } from '../../../services/console/pages/settings/snippets.ts'
import { root } from '../../support/test-projects.ts'

const url = 'https://tidegate.example'
const snippets = snippetsOf({ publishableKey: 'pk_live_x', url })
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')

/** Source files of our modules that the snippets import. */
const modules: Record<string, string> = {
  [`${url}/t.js`]: 'services/web/sdk/index.ts',
  '@tidegate/browser': 'services/web/sdk/package.ts',
}

test.each(snippets)(
  'the $title snippet is valid code and imports existing exports',
  async ({ title, code }) => {
    const script = code.replace(/<\/?script.*>/g, '')
    await transform(script, { loader: 'jsx', jsx: 'preserve', format: 'esm', target: 'esnext' })
    const imports = [...script.matchAll(/import \{ (\w+) \} from '(.+)'/g)]
    expect([title, imports.length]).toEqual([title, 1])
    for (const [, name = '', from = ''] of imports)
      expect(read(modules[from] ?? from)).toMatch(new RegExp(`^export [^]*\\b${name}\\b`, 'm'))
  },
)

test.each(snippets)('the $title snippet calls the SDK like the guide does', ({ code }) => {
  const guide = read('docs/guide/browser-sdk.md')
  const [line = ''] = /import .*/.exec(code) ?? []
  expect(guide).toContain(line)
  const call = code.match(/\w+\(\{ publishableKey.*\}\)/)?.[0] ?? ''
  expect(guide).toContain(call.replace('pk_live_x', 'pk_live_...'))
  expect(code).toContain('await tidegate.getSession()')
})
