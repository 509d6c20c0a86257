import { expect, test } from 'vitest'
import { filesByNeed } from './chosen.ts'

// Split, or this file would need them.
const call = (names: string) => `${'needs'}(${names})`
const texts: Record<string, string> = {
  'test/plain.test.ts': "import { x } from './support/logs.ts'",
  'test/page.test.ts': `import { needs } from './support/needs.ts'\nconst { it } = ${call("'chromium', 'desktop'")}`,
  'test/proxy.test.ts': `describe.each([['nginx', ${call("'nginx'")}]])\n${call('')}.it()`,
  'test/support/logs.ts': `export const logs = ${call("'kafka'")}.areMet`,
  'test/support/needs.ts': '',
}

test('needs are what the text of a file names, and that of the modules of test/ that it imports', () => {
  const files = Object.keys(texts).filter((file) => file.endsWith('.test.ts'))
  expect([...filesByNeed(files, (file) => texts[file] ?? '')]).toEqual([
    ['kafka', ['test/plain.test.ts']],
    ['chromium', ['test/page.test.ts']],
    ['desktop', ['test/page.test.ts']],
    ['nginx', ['test/proxy.test.ts']],
  ])
})
