import { useState } from 'preact/hooks'

interface CopyProps {
  text: string
  /** Button label. Default: `Copy`. */
  label?: string
  title?: string
  class?: string
}

/** A button that copies the text. It reads "Copied" until the text changes. */
export function CopyButton({ text, label = 'Copy', title, class: style }: CopyProps) {
  const [copied, setCopied] = useState<string | null>(null)
  return (
    <button
      type="button"
      class={style}
      title={title}
      onClick={(event) => {
        // A menu stays open to show "Copied".
        event.preventDefault()
        navigator.clipboard.writeText(text).then(() => setCopied(text), console.warn)
      }}
    >
      {copied === text ? 'Copied' : label}
    </button>
  )
}
