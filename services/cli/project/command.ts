import type { Command } from 'commander'
import type { ProjectFlags } from './run.ts'

export function defineProject(command: Command): void {
  command
    .argument('<file>', 'the view, as ./my-view.ts')
    .option('--new', 'write the file, with a view that runs as it is', false)
    .option('--once', 'end when the view has all that the log has now', false)
    .option('--rebuild', 'build it anew beside the old one, compare the two, then switch', false)
    .option('--accept-differences', 'with --rebuild: switch although the new one differs', false)
    .option(
      '--from-scratch',
      'with --rebuild: drop what an unfinished one has built, instead of going on with it',
      false,
    )
    .action(async (file: string, flags: ProjectFlags & { new: boolean }) => {
      if (flags.new) return (await import('./template.ts')).writeTemplate(file)
      return (await import('./run.ts')).runProject(file, flags)
    })
}
