import { useState } from 'preact/hooks'

/** Code with a button that copies it. */
export function CodeBlock({ code }: { code: string }) {
  const [copied, setCopied] = useState<string | null>(null)
  return (
    <div class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by keyboard, too */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
      <button
        type="button"
        onClick={() => navigator.clipboard.writeText(code).then(() => setCopied(code), console.warn)}
      >
        {copied === code ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}
