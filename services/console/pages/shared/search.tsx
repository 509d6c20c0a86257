import { usePageKeys } from './keys.ts'

interface SearchProps {
  label: string
  placeholder: string
  /** Current search text. */
  value: string
  search: (text: string) => void
}

/** The page's search field; `/` focuses it. */
export function Search({ label, placeholder, value, search }: SearchProps) {
  usePageKeys((event) => {
    if (event.key !== '/') return
    event.preventDefault()
    document.getElementById('search')?.focus()
  }, [])
  return (
    <search>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault()
          search(String(new FormData(event.currentTarget).get('search') ?? '').trim())
        }}
      >
        <input
          key={value}
          id="search"
          type="search"
          name="search"
          aria-label={label}
          placeholder={placeholder}
          defaultValue={value}
        />
      </form>
    </search>
  )
}
