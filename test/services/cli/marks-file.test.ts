import { expect, test } from 'vitest'
import { ApiError } from '../../../infra/errors/errors.ts'
import { parseMarks } from '../../../services/cli/operator/marks-file.ts'

const sid = (n: number) => `sid_${String(n).padStart(26, '0')}`

function problems(text: string): string[] {
  try {
    parseMarks(text)
  } catch (error) {
    if (error instanceof ApiError) return (error.details?.fields ?? []).map(({ name }) => name)
  }
  return []
}

test('columns can be in any order, with or without quotes, and with any line endings', () => {
  const rows = [`bot,"${sid(1)}",charged_back`, `human , ${sid(2)},`, '', `"fraud",${sid(3)}`, '']
  for (const [start, end] of [
    ['', '\n'],
    ['\uFEFF', '\r\n'],
  ] as const)
    expect(parseMarks(start + ['label,session_id,reason', ...rows].join(end))).toEqual([
      { line: 2, session_id: sid(1), label: 'bot', reason: 'charged_back' },
      { line: 3, session_id: sid(2), label: 'human', reason: null },
      { line: 5, session_id: sid(3), label: 'fraud', reason: null },
    ])
})

test('exported marks can be imported', () => {
  const text = `session_id,label,reason,marked_at\n${sid(1)},bot,x,2026-11-26T10:00:00.000Z\n`
  expect(parseMarks(text)).toEqual([{ line: 2, session_id: sid(1), label: 'bot', reason: 'x' }])
})

test.each<[string, string[]]>([
  ['', ['line 1, session_id', 'line 1, label', 'line 1, ']],
  [
    `${sid(1)},bot,x`,
    ['line 1, session_id', 'line 1, label', `line 1, ${sid(1)}`, 'line 1, bot', 'line 1, x'],
  ],
  [`session_id,label,resaon\n${sid(1)},bot,x`, ['line 1, resaon']],
  [`session_id,label,label\n${sid(1)},bot,human`, ['line 1, label']],
  [
    `session_id,label,reason\nsid_1,bots,Some Body\n${sid(1)}\n`,
    ['line 2, session_id', 'line 2, label', 'line 2, reason', 'line 3, label'],
  ],
  [`session_id,label\n${sid(1)},bot,x`, ['line 2, cells']],
  [`session_id,label\n${sid(1)},bot\n${sid(2)},bot\n${sid(1)},human`, ['line 4, session_id']],
])('%j is rejected with all its problems', (text, names) => expect(problems(text)).toEqual(names))
