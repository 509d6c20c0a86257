import { parseSync } from 'oxc-parser'

/** A rule of a file, broken in one place. */
export interface Mutant {
  file: string
  line: number
  /** Indexes into the file's text. */
  start: number
  end: number
  text: string
  replacement: string
}

interface SyntaxNode {
  type: string
  start: number
  end: number
  [member: string]: unknown
}

const opposites: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
}

/** Returns every way to break one comparison, condition, guard or limit of the file. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const { program } = parseSync(file, source)
  const found: Mutant[] = []
  const add = (start: number, end: number, replacement: string) =>
    found.push({
      file,
      line: source.slice(0, start).split('\n').length,
      start,
      end,
      text: source.slice(start, end),
      replacement,
    })
  for (const node of nodesIn(program)) {
    if (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') {
      const { left, right, operator } = node
      const opposite = opposites[String(operator)]
      if (!opposite || !isNode(left) || !isNode(right)) continue
      const at = source.indexOf(String(operator), left.end)
      if (at < right.start) add(at, at + String(operator).length, opposite)
    }
    if (node.type === 'IfStatement' && isNode(node.test) && isGuard(node.consequent))
      add(node.test.start, node.test.end, 'false')
    if (node.type === 'VariableDeclarator' && isNode(node.init) && isLimit(node.init))
      add(node.init.start, node.init.end, `(${source.slice(node.init.start, node.init.end)}) * 3`)
  }
  return found
}

// A guard ends the function or throws.
function isGuard(consequent: unknown): boolean {
  return isNode(consequent) && /^(ThrowStatement|ReturnStatement)$/.test(consequent.type)
}

// A number, or a product of numbers.
function isLimit(node: SyntaxNode): boolean {
  if (node.type === 'Literal') return typeof node.value === 'number' && node.value > 0
  return (
    node.type === 'BinaryExpression' &&
    node.operator === '*' &&
    [node.left, node.right].every((side) => isNode(side) && isLimit(side))
  )
}

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

function* nodesIn(value: unknown): Generator<SyntaxNode> {
  if (Array.isArray(value)) for (const one of value) yield* nodesIn(one)
  if (!isNode(value)) return
  yield value
  for (const member of Object.values(value))
    if (typeof member === 'object' && member !== null) yield* nodesIn(member)
}
