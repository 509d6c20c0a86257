import { useState } from 'preact/hooks'

/** A button that copies the text, and says so until there is another one. */
export function Copy({ text }: { text: string }) {
  const [copied, setCopied] = useState<string | null>(null)
  return (
    <button
      type="button"
      class="copy"
      onClick={() => navigator.clipboard.writeText(text).then(() => setCopied(text), console.warn)}
    >
      {copied === text ? 'Copied' : 'Copy'}
    </button>
  )
}
