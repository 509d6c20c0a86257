import { expect, test } from 'vitest'
import { allComments, commentsIn, longSentences, proseIn, proseOfDocs } from './comments.ts'

test('doc comments are counted, strings and line comments are not', () => {
  const text =
    "/** One. */\nconst a = '/** no */' // /** no */\n  /**\n   * Two\n   * lines.\n   */\n/* no */"
  expect(commentsIn(text)).toEqual(['One.', 'Two\nlines.'])
})

test('a sentence is measured without code blocks, and a table cell is a text of its own', () => {
  const words = (count: number) => Array.from({ length: count }, () => 'word').join(' ')
  const page = `# Title\n\n${words(31)}. Short.\n\n\`\`\`sh\n${words(40)}\n\`\`\`\n\n| a | b |\n|-|-|\n| ${words(20)} | ${words(20)} |`
  const passages = proseIn(page).map((text) => ({ file: 'page.md', text }))
  expect(longSentences(passages)).toEqual([{ file: 'page.md', text: `${words(31)}.` }])
})

test('no sentence of the docs and of doc comments has more than 30 words', () => {
  expect(proseOfDocs().length).toBeGreaterThan(500)
  expect(longSentences(proseOfDocs())).toEqual([])
  expect(longSentences(allComments())).toEqual([])
})
