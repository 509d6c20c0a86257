import { CopyButton } from './copy.tsx'

/** Code with a button that copies it. */
export function CodeBlock({ code }: { code: string }) {
  return (
    <div class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by keyboard, too */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} />
    </div>
  )
}
