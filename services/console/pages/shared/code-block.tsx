import { CopyButton } from './copy.tsx'

export function CodeBlock({ code }: { code: string }) {
  return (
    <div class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: must be focusable to scroll by keyboard */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} />
    </div>
  )
}
