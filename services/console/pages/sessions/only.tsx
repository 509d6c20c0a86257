import { hrefWith } from '../shared/address.ts'

interface OnlyProps {
  field: string
  value: string | null | undefined
  text?: string
  title?: string | null | undefined
}

/** A value that leads to the sessions which have it, too. */
export function Only({ field, value, text, title }: OnlyProps) {
  if (!value) return null
  return (
    <a class="only" href={hrefWith({ [field]: value })} title={title ?? undefined}>
      {text ?? value}
    </a>
  )
}
